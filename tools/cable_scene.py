"""A gateway and a virtual board, both real, with nothing but a cable between them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway import registry
from gateway.config import Config
from tools import ledger
from tools.children import Child, Children
from tools.ledger import Ledger, Trace
from tools.scene import free_port
from tools.usb_cable import UsbCable

NAME = "cable-board"
READY_S = 30.0
LOOK_S = 0.1


class CableScene:
    """What it starts ends with `children`.

    Args:
        period_ms: between the board's readings.
        baud: of the cable; None for as fast as it goes.
        has_wifi: the board has Wi-Fi as well, within reach while `set_wifi` says so.
    """

    def __init__(
        self,
        folder: Path,
        children: Children,
        period_ms: int,
        baud: int | None = None,
        *,
        has_wifi: bool = False,
    ) -> None:
        self._folder = folder
        self._children = children
        self._period_ms = period_ms
        self._baud = baud
        self._port = free_port()
        self._link = folder / "board.link"
        self._has_wifi = has_wifi
        self.set_wifi(up=False)
        self._board: Child | None = None
        self._trace = folder / "board.trace"
        self._flash = folder / "board.img"
        self._end = folder / "board.tty"
        self.database = folder / "fieldpost.db"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[UsbCable]:
        """Run both inside the block, with the cable plugged in; the board is off after it."""
        key = await registry.add(Config(db=str(self.database)), NAME)
        cable = UsbCable(self._folder / "ttyUSB0", self._baud)
        cable.plug()
        await self._start_gateway(cable.port)
        await self._start_board(key)
        async with asyncio.timeout(READY_S):
            while not self._end.exists():
                await asyncio.sleep(LOOK_S)
        cable.attach(self._end)
        carrying = asyncio.create_task(cable.carry())
        try:
            yield cable
        finally:
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            await self._off()

    async def opened(self, times: int) -> None:
        """Wait until the gateway has opened the port so many times."""
        log = self._folder / "gateway.log"
        async with asyncio.timeout(READY_S):
            while log.read_text().count(" is open") < times:
                await asyncio.sleep(LOOK_S)

    def set_wifi(self, *, up: bool) -> None:
        self._link.write_text("up" if up else "down")

    def trace(self) -> Trace:
        return Trace.read(self._trace)

    async def drained(self, seconds: float) -> bool:
        """Wait until all that was taken before now is accounted for; return whether it was."""
        taken = self.trace().taken
        try:
            async with asyncio.timeout(seconds):
                while taken - self._settled():
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            return False
        return True

    def book(self) -> Ledger:
        """Return the board's ledger; the board must be off."""
        stored = ledger.stored(self.database, NAME)
        return Ledger(NAME, self.trace(), stored, ledger.waiting(self._flash))

    def _settled(self) -> set[str]:
        trace = self.trace()
        return {*ledger.stored(self.database, NAME), *trace.dropped, *trace.dead}

    async def _start_gateway(self, port: Path) -> None:
        """Start it, and return when it has opened the port: what comes before is lost."""
        await self._start(
            "gateway", "-m", "gateway", "serve", "--db", self.database, "--port", self._port,
            "--workers", 0, "--serial", port,
        )  # fmt: skip
        await self.opened(1)

    async def _start_board(self, key: str) -> None:
        gateway = f"http://127.0.0.1:{self._port}" if self._has_wifi else "cable:"
        self._board = await self._start(
            "board", "-m", "tools.virtual_board", "--flash", self._flash, "--device", NAME,
            "--key", key, "--gateway", gateway, "--period-ms", self._period_ms,
            "--trace", self._trace, "--link", self._link, "--cable", "--pty", self._end,
        )  # fmt: skip

    async def _start(self, name: str, *command: object) -> Child:
        with (self._folder / f"{name}.log").open("ab") as log:
            return await self._children.start(name, *command, stdout=log, stderr=log)

    async def _off(self) -> None:
        if self._board is not None and self._board.process.returncode is None:
            self._board.process.kill()
            await self._board.process.wait()
