"""A database, a door for readings and the watcher of the alarms, by a clock that is given."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway import handlers
from gateway.alarm_notices import Notices
from gateway.alarms import Surroundings, Watcher
from gateway.events import Bus, Event
from gateway.ingest import Ingest
from gateway.store import alarms
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Queue
from gateway.tables import Alarms

START_MS = 1_764_529_200_000
BOOT = "7f3a17c21"
KINDS = handlers.registry({"folder": "", "calibration": {}, "smtp": None, "webhook_key": None})


class Watched:
    """`wall_ms` and `monotonic_ms` go on together by `pass_s`, and one alone by `step_s`."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.wall_ms = START_MS
        self.monotonic_ms = 5_000_000
        self.free_bytes = 10**12
        self.told: list[Event] = []
        self.woken = 0
        self.queue = Queue()
        self._bus = Bus()
        self._bus.subscribe(self.told.append)
        self._ingest = Ingest(database)
        self._seq: dict[str, int] = {}

    def now(self) -> Instant:
        return Instant(self.wall_ms, self.wall_ms - self.monotonic_ms)

    def start(self, **settings: Any) -> None:
        """Begin to watch, as a gateway that starts now."""
        known = Alarms(**settings)
        around = Surroundings(self.folder, 1024**2, lambda _: self.free_bytes)
        notices = Notices(known.notify, self.queue, KINDS, has_smtp=True)
        self.watcher = Watcher(
            self.database, known, self.now, around, notices=notices, bus=self._bus, wake=self._wake
        )

    async def pass_s(self, seconds: float, every_s: float = 2.0) -> None:
        """Let time go by, with a look every so often."""
        left_ms = int(seconds * 1000)
        while left_ms > 0:
            step_ms = min(left_ms, int(every_s * 1000))
            self.skip_s(step_ms / 1000)
            left_ms -= step_ms
            await self.watcher.run_once()

    def skip_s(self, seconds: float) -> None:
        """Let time go by while nobody looks."""
        self.wall_ms += int(seconds * 1000)
        self.monotonic_ms += int(seconds * 1000)

    def step_s(self, seconds: float) -> None:
        """Step the wall clock."""
        self.wall_ms += int(seconds * 1000)

    async def deliver(
        self, device: str = "esp32-1", *numbers: int, boot: str = BOOT, of: str | None = None,
        value: float = 1.0, **envelope: Any,
    ) -> None:  # fmt: skip
        """Deliver a message of `device`, with readings of the boot `of`, else of `boot`."""
        self._seq[device] = self._seq.get(device, 0) + 1
        sent = {
            "device": device, "boot": boot, "seq": self._seq[device], "up_ms": 1,
            "readings": [
                {"id": f"{device}-{of or boot}-{n}", "sensor": "s", "value": value}
                for n in numbers
            ],
        } | envelope  # fmt: skip
        await self._ingest.deliver(json.dumps(sent).encode(), device=None, received_ms=self.wall_ms)

    async def look(self) -> list[tuple[str, str]]:
        """Look once; return kind and subject of what is open then, in order."""
        await self.watcher.run_once()
        return await self.open()

    async def open(self) -> list[tuple[str, str]]:
        return sorted(await alarms.every_open(self.database))

    async def rows(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.database.all(sql, params)]

    async def write(self, work: Any) -> Any:
        return await self.database.write(work)

    def _wake(self) -> None:
        self.woken += 1


@asynccontextmanager
async def watched(folder: Path, **settings: Any) -> AsyncIterator[Watched]:
    database = await Database.open(str(folder / "fieldpost.db"))
    try:
        found = Watched(database, folder)
        found.start(**settings)
        yield found
    finally:
        await database.close()
