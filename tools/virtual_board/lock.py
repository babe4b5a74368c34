"""One board for each flash: an advisory lock on the image, held as long as anyone of us lives."""

import contextlib
import os
import sys
import time
from pathlib import Path

from tools.virtual_board.refused import Refused

WAIT_S = 5.0
_LOOK_S = 0.05


def take(path: Path, wait_s: float = WAIT_S) -> int:
    """Open and lock the file, made empty if it is missing; return its descriptor.

    A child that inherits the descriptor holds the lock too, so a dead supervisor's interpreter
    can not meet its successor on the same flash.

    Raises:
        Refused: somebody else has it, or it can not be written.
    """
    give_up_at = time.monotonic() + wait_s
    while True:
        fd = _open(path)
        if hold(fd) and still_there(path, fd):
            _pid_file(path).write_text(f"{os.getpid()}\n")
            return fd
        os.close(fd)
        if time.monotonic() > give_up_at:
            raise Refused(f"{path} is in use by {_holder(path)}; stop that board first")
        time.sleep(_LOOK_S)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    except OSError as error:
        raise Refused(f"can not write {path}: {error.strerror}") from error


def hold(fd: int) -> bool:
    """Lock an open file, or return False if somebody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def still_there(path: Path, fd: int) -> bool:
    """Whether this is still the file's: whoever made the flash put a new one in its place."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(fd))
    return False


def _pid_file(path: Path) -> Path:
    return path.with_name(path.name + ".pid")


def _holder(path: Path) -> str:
    try:
        return f"process {int(_pid_file(path).read_text())}"
    except (OSError, ValueError):
        return "another process"
