"""The tie of a board's process to its supervisor: it ends when the supervisor does, however."""

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_STDIN = 0


def tie(supervisor: int) -> None:
    """Tie this process, which is about to become an interpreter that runs no Python of ours."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        fork_watcher()
    if os.getppid() != supervisor:  # it was gone before the kernel knew whom to tell
        os._exit(1)


def fork_watcher() -> None:
    """Leave a process behind that kills this one when the supervisor's end of stdin closes."""
    board = os.getpid()
    if os.fork():
        return
    os.closerange(1, 256)  # it must hold neither the flash's lock nor the supervisor's pipes
    _wait_for_end()
    if os.getppid() == board:
        os.kill(board, signal.SIGKILL)
    os._exit(0)


def tie_thread() -> None:
    """Tie a process that goes on running Python, on any platform."""
    threading.Thread(target=_end_with_supervisor, daemon=True).start()


def _end_with_supervisor() -> None:
    _wait_for_end()
    os._exit(1)


def _wait_for_end() -> None:
    while os.read(_STDIN, 1024):
        pass  # the supervisor says nothing: only the end of its pipe counts
