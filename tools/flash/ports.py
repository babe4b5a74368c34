"""Which serial port the board is on, and whether it can be had."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from serial.tools import list_ports

from tools.flash import ask
from tools.flash.trouble import Trouble

# The gateway gives a port up within 2 s of seeing its lock.
GIVEN_UP_S = 4.0
_LOOK_S = 0.1
_PROC = Path("/proc")
_THIEVES = {
    "brltty": "sudo systemctl mask --now brltty-udev brltty",
    "ModemManager": "sudo systemctl disable --now ModemManager",
}


def plugged_in() -> list[str]:
    """Return the ports of USB devices. A PC's own hold no board."""
    return sorted(port.device for port in list_ports.comports() if port.vid is not None)


def find(given: str | None, there: Callable[[], Sequence[str]] = plugged_in) -> str:
    """Return the board's port: the one that was given, or the only one, or the one chosen.

    Raises:
        Trouble: there is none, or one must be named.
    """
    if given:
        return given
    found = there()
    if not found:
        raise Trouble("no_port", beside="")
    if len(found) == 1:
        return found[0]
    if not ask.somebody_there():
        raise Trouble("which_port", count=len(found), ports=", ".join(found))
    return ask.choose("Which one is the board on?", found)


def require(port: str, platform: str = sys.platform) -> None:
    """Raise Trouble unless the port is there and may be opened."""
    if platform == "win32":
        if port not in {one.device for one in list_ports.comports()}:
            raise Trouble("windows_com", port=port)
        return
    if not os.path.exists(port):
        others = plugged_in()
        beside = f" at {port}" + (f"; there is {', '.join(others)}" if others else "")
        raise Trouble("no_port", beside=beside)
    if not os.access(port, os.R_OK | os.W_OK):
        raise Trouble("no_permission", port=port, group=_group(port))


def require_free(port: str, proc: Path = _PROC, patience_s: float = GIVEN_UP_S) -> None:
    """Wait until nobody else has the port open, or raise Trouble that says who has it."""
    give_up_at = time.monotonic() + patience_s
    while held_by := holder(port, proc):
        if time.monotonic() > give_up_at:
            program = held_by.partition(" (")[0]
            if program in _THIEVES:
                raise Trouble("brltty", program=program, remedy=_THIEVES[program])
            raise Trouble("busy_port", port=port, holder=held_by)
        time.sleep(_LOOK_S)


def holder(port: str, proc: Path = _PROC) -> str | None:
    """Return the program and process that has the port open; None if nobody has, or on a system
    that does not say."""
    device = os.path.realpath(port)
    for process in _processes(proc):
        if int(process.name) != os.getpid() and device in (files := set(_open_files(process))):
            if any(name.endswith("ptmx") for name in files):
                continue  # a virtual board, which is the port itself
            return f"{_name(process)} (process {process.name})"
    return None


def thieves(proc: Path = _PROC) -> list[str]:
    """Return which programs run that are known to take the ports of boards."""
    return sorted({name for one in _processes(proc) if (name := _name(one)) in _THIEVES})


def remedy(program: str) -> str:
    return _THIEVES[program]


def _processes(proc: Path) -> Iterator[Path]:
    if proc.is_dir():
        yield from (entry for entry in proc.iterdir() if entry.name.isdigit())


def _open_files(process: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):  # it is another user's, or gone
        for entry in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield os.readlink(entry)


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "a program"


def _group(port: str) -> str:
    import grp  # not on Windows

    group = os.stat(port).st_gid
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)
