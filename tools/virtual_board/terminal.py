"""The board's USB port: a pseudo-terminal that `mpremote` and a gateway open as any serial port."""

import contextlib
import os
import re
import select
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Protocol

from tools.virtual_board.refused import Refused

CTRL_C = b"\x03"
# What nobody reads is lost, as on a serial line; but a reader may be busy for a moment.
WRITE_PATIENCE_S = 0.5
# What follows a Ctrl-C is typed to whoever comes up when the program has ended.
INTERRUPT_PATIENCE_S = 0.5
_LOOK_S = 0.002


class Life(Protocol):
    """A process that has a keyboard."""

    def type(self, data: bytes) -> None: ...

    def interrupt(self) -> None: ...


class Terminal:
    def __init__(self, link: Path | None) -> None:
        if sys.platform == "win32":
            raise Refused("Windows has no pseudo-terminals: run the board on Linux or macOS")
        import tty

        # The other side stays open here too: else our reads fail while nobody has the port open.
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.device = os.ttyname(self._slave)
        self._link = link
        self._somebody_reads = True
        if link is not None:
            _point(link, self.device)

    @property
    def name(self) -> str:
        """What to say as PORT."""
        return self.device if self._link is None else str(self._link)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._link is not None and os.readlink(self._link) == self.device:
                self._link.unlink()

    def read(self) -> bytes:
        """Wait for what somebody types, and return it."""
        select.select([self._master], [], [])
        return os.read(self._master, 4096)

    def write(self, data: bytes) -> None:
        while data and self._room():
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self._master, data) :]

    def _room(self) -> bool:
        patience_s = WRITE_PATIENCE_S if self._somebody_reads else 0.0
        self._somebody_reads = bool(select.select([], [self._master], [], patience_s)[1])
        return self._somebody_reads


def _point(link: Path, device: str) -> None:
    if link.exists() and not link.is_symlink():
        raise Refused(f"{link} is there and is no port of a board's: name another one")
    try:
        draft = link.with_name(link.name + ".new")
        draft.unlink(missing_ok=True)
        draft.symlink_to(device)
        draft.replace(link)
    except OSError as error:
        raise Refused(f"can not make {link}: {error.strerror}") from error


class Console:
    """Carries what is typed to whichever life the board is in, and Ctrl-C as an interrupt.

    `switch_fd` is a file of one byte, in which the interpreter keeps the character that
    interrupts it now: read when it is needed, so that it is never out of date.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._switch = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 kept for life
        self.switch_fd = self._switch.fileno()
        self._life: Life | None = None
        threading.Thread(target=self._pump, daemon=True).start()

    def attach(self, life: Life) -> None:
        self._life = life

    def detach(self) -> None:
        """What is typed between two lives of a board is lost."""
        self._life = None
        os.pwrite(self.switch_fd, b"\0", 0)

    def _pump(self) -> None:
        while True:
            for piece in re.split(b"(\x03)", self.terminal.read()):
                if self._life is not None and piece:
                    self._pass_on(self._life, piece)

    def _pass_on(self, life: Life, piece: bytes) -> None:
        if piece != CTRL_C or not self._interrupts():
            life.type(piece)
            return
        life.interrupt()
        give_up_at = time.monotonic() + INTERRUPT_PATIENCE_S
        while self._interrupts() and time.monotonic() < give_up_at:
            time.sleep(_LOOK_S)

    def _interrupts(self) -> bool:
        return os.pread(self.switch_fd, 1, 0) == CTRL_C
