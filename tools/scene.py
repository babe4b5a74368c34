"""A gateway and some virtual boards, all real, and what can be done to them."""

import asyncio
from pathlib import Path

from gateway import listener, registry
from gateway.config import Config
from tools import ledger
from tools.children import Child, Children
from tools.ledger import Ledger, Trace

DRAIN_S = 180.0  # a wait is at most 64 s, and a killed gateway may cost two of them
LOOK_S = 0.5


class VirtualBoard:
    """One board: its files, and its process while it has power."""

    def __init__(
        self, folder: Path, name: str, key: str, gateway: str, period_ms: int,
        *flags: object,
    ) -> None:  # fmt: skip
        self.name = name
        self.flash = folder / f"{name}.img"
        self._link = folder / f"{name}.link"
        self._trace = folder / f"{name}.trace"
        self.log = folder / f"{name}.log"  # what it prints on its serial line
        self._command = (
            *("-m", "tools.virtual_board", "--device", name, "--key", key, "--gateway", gateway),
            *("--period-ms", period_ms, "--flash", self.flash, "--trace", self._trace),
            *("--link", self._link), *flags,
        )  # fmt: skip
        self._child: Child | None = None
        self.set_link(up=True)

    async def start(self, children: Children) -> None:
        with self.log.open("ab") as log:
            self._child = await children.start(self.name, *self._command, stdout=log, stderr=log)

    async def kill(self) -> bool:
        """Cut its power; return False if it is off already."""
        return await _killed(self._child)

    def set_link(self, *, up: bool) -> None:
        self._link.write_text("up" if up else "down")

    def trace(self) -> Trace:
        return Trace.read(self._trace)


class Scene:
    """The gateway, its database, and its boards. What it starts ends with `children`."""

    def __init__(self, folder: Path, children: Children) -> None:
        self._folder = folder
        self._children = children
        self._gateway: Child | None = None
        self._config = Config(db=str(folder / "fieldpost.db"), port=free_port())
        self.database = Path(self._config.db)
        self.boards: list[VirtualBoard] = []

    async def open(self, boards: int, period_ms: int, *flags: object) -> None:
        """Register the boards, and start everything; `flags` are of each board."""
        for number in range(1, boards + 1):
            name = f"board-{number}"
            key = await registry.add(self._config, name)
            url = f"http://127.0.0.1:{self._config.port}"
            self.boards.append(VirtualBoard(self._folder, name, key, url, period_ms, *flags))
        await self.start_gateway()
        for board in self.boards:
            await self.start(board)

    async def start(self, board: VirtualBoard) -> None:
        await board.start(self._children)

    async def start_gateway(self) -> None:
        with (self._folder / "gateway.log").open("ab") as log:
            self._gateway = await self._children.start(
                "the gateway",
                *("-m", "gateway", "serve", "--db", self._config.db, "--port", self._config.port),
                stdout=log, stderr=log,
            )  # fmt: skip

    async def kill_gateway(self) -> bool:
        """Kill it; return False if it is away already."""
        return await _killed(self._gateway)

    async def drained(self) -> bool:
        """Wait until all that was taken before now is accounted for; return whether it was."""
        taken = {board.name: board.trace().taken for board in self.boards}
        try:
            async with asyncio.timeout(DRAIN_S):
                while any(taken[board.name] - self._settled(board) for board in self.boards):
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            return False
        return True

    def books(self) -> list[Ledger]:
        """Return each board's ledger; the boards must be off."""
        return [
            Ledger(
                board.name, board.trace(),
                ledger.stored(self.database, board.name), ledger.waiting(board.flash),
            )
            for board in self.boards
        ]  # fmt: skip

    def _settled(self, board: VirtualBoard) -> set[str]:
        trace = board.trace()
        return {*ledger.stored(self.database, board.name), *trace.dropped, *trace.dead}


async def _killed(child: Child | None) -> bool:
    if child is None or child.process.returncode is not None:
        return False
    child.process.kill()
    await child.process.wait()
    return True


def free_port() -> int:
    """Return a port for all the gateway's lives."""
    port = listener.bind("127.0.0.1", 0)
    try:
        return int(port.getsockname()[1])
    finally:
        port.close()
