"""The process that turns into MicroPython: `interpreter SUPERVISOR_PID HEAP_BYTES`."""

import importlib
import os
import sys
from pathlib import Path

from tools.virtual_board import lifeline

BOOTSTRAP = Path(__file__).with_name("port") / "bootstrap.py"


def main() -> None:
    supervisor, heap_bytes = sys.argv[1:]
    lifeline.tie(int(supervisor))
    micropython = importlib.import_module("micropython_unix")  # no types, and not on each platform
    os._exit(micropython.run_main(["micropython", "-X", f"heapsize={heap_bytes}", str(BOOTSTRAP)]))


if __name__ == "__main__":
    main()
