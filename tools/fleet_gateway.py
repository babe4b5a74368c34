"""The gateway of a fleet: one of its own, or one that runs already."""

import asyncio
import csv
import io
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gateway import master
from gateway.app import now_ms
from gateway.config import Config
from gateway.keys import OPERATOR_TOKEN
from gateway.opening import database
from gateway.store import devices
from tools.children import Child, Children
from tools.scene import free_port

_READY_S = 30.0
_LOOK_S = 0.05
_AT_ONCE = 32


class Row(NamedTuple):
    """One stored reading."""

    id: str
    at_ms: int


class Gateway:
    """One that runs already.

    Args:
        url: `http://HOST:PORT`.
        database: its file, by which devices are registered and the operator's token is found;
            None for a gateway in open mode.
    """

    def __init__(self, url: str, database: Path | None) -> None:
        self.url = url
        self.database = database

    async def register(self, names: Iterable[str]) -> dict[str, bytes | None]:
        """Return each device's key; None where the gateway is open."""
        if self.database is None:
            return dict.fromkeys(names)
        config = Config(db=str(self.database))
        gate = asyncio.Semaphore(_AT_ONCE)
        async with database(config) as db:
            keys = await master.keys_of(config, db)

            async def key_of(name: str) -> tuple[str, bytes | None]:
                async with gate:  # so many share a commit
                    return name, keys.device_key(name, await devices.register(db, name, now_ms()))

            return dict(await asyncio.gather(*map(key_of, names)))

    async def stored(self, names: Iterable[str]) -> dict[str, list[Row]]:
        """Return every row that it has of each device, over HTTP."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def of(name: str) -> list[Row]:
            async with gate:
                return await asyncio.to_thread(self._rows, name)

        wanted = list(names)
        return dict(zip(wanted, await asyncio.gather(*map(of, wanted)), strict=True))

    def _rows(self, name: str) -> list[Row]:
        request = urllib.request.Request(f"{self.url}/v1/readings?device={name}")
        request.add_header("Accept", "text/csv")
        if self.database is not None:
            token = self.database.with_name(OPERATOR_TOKEN).read_text().strip()
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            lines = io.StringIO(answer.read().decode(), newline="")
        return [Row(row["reading_id"], int(row["at_ms"])) for row in csv.DictReader(lines)]


class OwnGateway(Gateway):
    """One that is started for the fleet, in a folder of its own, and can be killed."""

    def __init__(self, folder: Path, children: Children) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}", folder / "fieldpost.db")
        self._port = port
        self._log = folder / "gateway.log"
        self._children = children
        self._child: Child | None = None

    async def start(self) -> None:
        """Start it, and return when it takes connections."""
        with self._log.open("ab") as log:
            self._child = await self._children.start(
                "the gateway", "-m", "gateway", "serve", "--db", self.database,
                "--port", self._port, "--workers", 0, stdout=log, stderr=log,
            )  # fmt: skip
        async with asyncio.timeout(_READY_S):
            while not await self._answers():
                await asyncio.sleep(_LOOK_S)

    async def kill(self) -> None:
        """End it at once, as a power cut would."""
        assert self._child is not None
        self._child.process.kill()
        await self._child.process.wait()

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True
