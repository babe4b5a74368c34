"""The tie of a board's process to its supervisor: it ends when the supervisor does, however."""

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_STDIN = 0
_WATCHED = 3  # the lifeline's number in the process that watches it


def tie(supervisor: int, fd: int) -> None:
    """Tie this process, which is about to become an interpreter that runs no Python of ours.

    fd: the end of a pipe whose other end only the supervisor has.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        fork_watcher(fd)
    if os.getppid() != supervisor:  # it was gone before the kernel knew whom to tell
        os._exit(1)


def fork_watcher(fd: int = _STDIN) -> None:
    """Leave a process behind that kills this one when the supervisor's end of the pipe closes."""
    board = os.getpid()
    if os.fork():
        return
    os.dup2(fd, _WATCHED)
    # It must hold neither the flash's lock nor the supervisor's pipes.
    os.closerange(0, _WATCHED)
    os.closerange(_WATCHED + 1, 256)
    _wait_for_end(_WATCHED)
    if os.getppid() == board:
        os.kill(board, signal.SIGKILL)
    os._exit(0)


def tie_thread(fd: int) -> None:
    """Tie a process that goes on running Python, on any platform."""
    threading.Thread(target=_end_with_supervisor, args=(fd,), daemon=True).start()


def _end_with_supervisor(fd: int) -> None:
    _wait_for_end(fd)
    os._exit(1)


def _wait_for_end(fd: int) -> None:
    while os.read(fd, 1024):
        pass  # the supervisor says nothing: only the end of its pipe counts
