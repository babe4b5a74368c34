"""The process that turns into MicroPython: `interpreter SUPERVISOR_PID HEAP_BYTES`."""

import ctypes
import importlib
import json
import os
import sys
from pathlib import Path

from tools.virtual_board import lifeline
from tools.virtual_board.child import INTERRUPT, ORDERS

BOOTSTRAP = Path(__file__).with_name("port") / "bootstrap.py"


def main() -> None:
    supervisor, heap_bytes = sys.argv[1:]
    lifeline.tie(int(supervisor), json.loads(os.environ[ORDERS])["lifeline_fd"])
    micropython = importlib.import_module("micropython_unix")  # no types, and not on each platform
    _be_interrupted()
    os._exit(micropython.run_main(["micropython", "-X", f"heapsize={heap_bytes}", str(BOOTSTRAP)]))


def _be_interrupted() -> None:
    """Let INTERRUPT raise KeyboardInterrupt in MicroPython where that is safe.

    On SIGINT its own handler leaves whatever runs, be it the allocator with its lock held.
    """
    libc = ctypes.CDLL(None)
    inside = ctypes.CDLL(importlib.import_module("micropython_run").__file__)
    libc.signal(INTERRUPT, ctypes.cast(inside.mp_sched_keyboard_interrupt, ctypes.c_void_p))
    libc.siginterrupt(INTERRUPT, 1)  # whoever sleeps or waits is woken


if __name__ == "__main__":
    main()
