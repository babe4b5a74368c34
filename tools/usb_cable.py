"""A USB cable between a virtual board and a gateway, that can be pulled out and has a speed.

The board's pseudo-terminal is at one end; at the other is one of ours, under a name that stays
the same, as /dev/ttyUSB0 does. What is on its way when the cable is pulled is lost.
"""

import asyncio
import os
import time
import tty
from pathlib import Path

_CHUNK_BYTES = 4096
_PACED_CHUNK_BYTES = 64
_LOOK_S = 0.001
_SLACK_S = 0.01


class _End:
    """One end: a terminal that can be gone at any time."""

    def __init__(self, fd: int, *others: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._others = others
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True  # its number may be another file's from now on
        for fd in (self._fd, *self._others):
            os.close(fd)

    def read(self, most: int) -> bytes:
        """Return what is there; nothing if nothing is."""
        try:
            return b"" if self._is_closed else os.read(self._fd, most)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Write it all, unless it is pulled out meanwhile."""
        while data and not self._is_closed:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                await asyncio.sleep(_LOOK_S)
            except OSError:
                return


class _Pace:
    """When bytes are through, at so many bits a second; a byte needs ten of them."""

    def __init__(self, baud: int | None) -> None:
        self._byte_s = 10 / baud if baud else 0.0
        self._free_at = 0.0
        self.chunk_bytes = _PACED_CHUNK_BYTES if baud else _CHUNK_BYTES

    async def through(self, nbytes: int) -> None:
        now = time.monotonic()
        # What we were late with is made up for: on a real line bytes follow each other closely.
        self._free_at = max(self._free_at, now - _SLACK_S) + nbytes * self._byte_s
        await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))


class UsbCable:
    """From a board, once it is attached, to `port`, which is made.

    Args:
        baud: bits a second; None for as fast as it goes.
    """

    def __init__(self, port: Path, baud: int | None = None) -> None:
        self.port = port
        self._baud = baud
        self._board: _End | None = None
        self._gateway: _End | None = None

    def attach(self, board: Path) -> None:
        """Put the board's end to this terminal, for good."""
        fd = os.open(board, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(fd)
        self._board = _End(fd)

    def plug(self) -> None:
        master, slave = os.openpty()
        tty.setraw(slave)
        draft = self.port.with_name(self.port.name + ".new")
        draft.symlink_to(os.ttyname(slave))
        draft.replace(self.port)
        self._gateway = _End(master, slave)

    def unplug(self) -> None:
        self.port.unlink(missing_ok=True)
        if self._gateway is not None:
            self._gateway.close()
            self._gateway = None

    async def carry(self) -> None:
        """Carry bytes both ways until cancelled; then the cable is gone."""
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._carry(to_board=False))
                ways.create_task(self._carry(to_board=True))
        finally:
            self.unplug()
            if self._board is not None:
                self._board.close()

    async def _carry(self, *, to_board: bool) -> None:
        pace = _Pace(self._baud)
        while True:
            ends = (self._gateway, self._board) if to_board else (self._board, self._gateway)
            data = ends[0].read(pace.chunk_bytes) if ends[0] else b""
            if not data:
                await asyncio.sleep(_LOOK_S)
                continue
            await pace.through(len(data))
            if ends[1]:  # else nobody is there
                await ends[1].write(data)
