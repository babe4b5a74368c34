"""The lock that asks the gateway for a port, data/ports/<name>.lock, held while we work."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.flash.trouble import Trouble

_LOOKERS_S = 0.5

try:
    import fcntl
except ImportError:  # Windows: there the system itself lets only one open a port
    fcntl = None  # type: ignore[assignment]


class Lock:
    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@contextmanager
def held(data: Path, port: str) -> Iterator[Lock]:
    """Hold the port's lock; it goes with this process, however that ends. Raises Trouble."""
    folder = data / "ports"
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / f"{Path(port).resolve().name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    lock = Lock(fd)
    try:
        if fcntl is not None:
            _take(fd, port)
        yield lock
    finally:
        lock.release()


def _take(fd: int, port: str) -> None:
    # Whoever only looks whether we are there holds it for an instant.
    give_up_at = time.monotonic() + _LOOKERS_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                raise Trouble("locked_port", port=port) from None
            time.sleep(0.02)
