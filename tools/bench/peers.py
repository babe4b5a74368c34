"""The other queues, as PyPI has them, in an environment of their own that is made once."""

import os
import subprocess
import sys
import venv
from pathlib import Path

PINS = ("huey==3.5.4", "litequeue==0.9", "persist-queue==1.1.0")
NAMES = tuple(pin.split("==")[0] for pin in PINS)


def python() -> str:
    """Return the Python that has them all; the first time it is made, which needs the network."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "fieldpost" / f"peers-{'-'.join(pin.replace('==', '-') for pin in PINS)}"
    found = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making {folder}, once", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINS]
        subprocess.run([*map(str, install)], check=True)
        (folder / "ready").touch()
    return str(found)
