"""The lock by which a tool on this machine asks for a serial port: data/ports/<name>.lock."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nobody can hold such a lock there
    fcntl = None  # type: ignore[assignment]  # mypy knows it as a module


class PortLock:
    """Looks whether somebody holds the lock of a port. It never makes the file.

    Args:
        folder: of the locks.
        device: the port, as it was named; whoever locks may know it by the name that a link to
            it has, or by the port's own.
    """

    def __init__(self, folder: Path, device: str) -> None:
        self._folder = folder
        self._device = Path(device)

    def is_held(self) -> bool:
        """Return whether the port is somebody else's now."""
        names = {self._device.name, self._device.resolve().name}
        return any(_is_held(self._folder / f"{name}.lock") for name in names)


def _is_held(path: Path) -> bool:
    if fcntl is None:
        return False
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False  # no file: nobody ever asked
    try:
        # Shared and for an instant: two who only look do not see each other.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False
