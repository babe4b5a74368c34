"""A database, a door for readings, and the real workers with the real kinds of jobs."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.handlers import REGISTRY
from gateway.ingest import Ingest
from gateway.model import Verdicts
from gateway.pool import Pool
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Asked
from tests.store.aggregate_books import Calibrated, Reading, expected

BOOT = "7f3a17c212"
GIVE_UP_S = 30


class Works:
    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.settings: dict[str, Any] = {"folder": str(folder)}
        self._ingest = Ingest(database)
        self._numbers: dict[str, int] = {}

    async def deliver(
        self, device: str, *readings: dict[str, Any], received_ms: int = 0
    ) -> Verdicts:
        """Deliver readings; each gets the device's next id if it has none."""
        given = [{"id": self._next_id(device), "sensor": "s", **one} for one in readings]
        body = json.dumps({"device": device, "readings": given}).encode()
        return await self._ingest.deliver(body, device=None, received_ms=received_ms)

    def _next_id(self, device: str) -> str:
        number = self._numbers[device] = self._numbers.get(device, 0) + 1
        return f"{device}-{BOOT}-{number}"

    async def rows(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.database.all(sql, params)]

    async def counted(self) -> list[tuple[Any, ...]]:
        return await self.rows(
            "SELECT device, sensor, span_ms, from_ms, count, texts, errors, sum, min, max,"
            " first_value, first_at_ms, last_value, last_at_ms FROM aggregates ORDER BY 1, 2, 3, 4"
        )

    async def expected(self, calibration: Calibrated | None = None) -> list[tuple[Any, ...]]:
        """Return what the aggregates of all that is stored should be."""
        stored = await self.rows(
            "SELECT d.name, s.name, r.at_ms, coalesce(r.value, r.text) FROM reading AS r"
            " JOIN device AS d ON d.id = r.device_id JOIN sensor AS s ON s.id = r.sensor_id"
            " ORDER BY r.id"
        )
        return expected([Reading(*row) for row in stored], calibration or {})

    @asynccontextmanager
    async def pool(self, **settings: Any) -> AsyncIterator[Pool]:
        pool = Pool(self.database, REGISTRY, self.settings | settings, workers=2)
        running = asyncio.create_task(pool.run())
        try:
            yield pool
        finally:
            await pool.stop(0)
            await running

    async def ask(self, pool: Pool, kind: str, **args: Any) -> int:
        asked = Asked(kind, json.dumps(args), request_id="r1")
        job_id, _ = await self.database.write(
            lambda c: pool.queue.enqueue(c, asked, Instant.now().wall_ms)
        )
        pool.wake()
        return job_id

    async def until(self, job_id: int, state: str) -> dict[str, Any]:
        """Wait until the job is in that state; one that failed instead is told."""
        async with asyncio.timeout(GIVE_UP_S):
            while True:
                row = await self.database.one("SELECT * FROM job WHERE id = :id", {"id": job_id})
                assert row is not None
                if row["state"] == state:
                    return dict(row)
                assert row["error"] is None, row["error"]
                await asyncio.sleep(0.02)

    async def put_off(self, job_id: int) -> dict[str, Any]:
        """Wait until the job was taken and given back for later; return its row."""
        moves = "SELECT 1 FROM job_event WHERE job_id = ? AND verb = 'snooze'"
        async with asyncio.timeout(GIVE_UP_S):
            while not await self.rows(moves, job_id):
                await asyncio.sleep(0.02)
        return await self.until(job_id, "pending")

    async def run(self, kind: str, **args: Any) -> dict[str, Any]:
        """Have a job done; return its row."""
        async with self.pool() as pool:
            return await self.until(await self.ask(pool, kind, **args), "done")

    async def refused(self, kind: str, **args: Any) -> str:
        """Have a job tried that fails at once; return why."""
        async with self.pool() as pool:
            job_id = await self.ask(pool, kind, **args)
            async with asyncio.timeout(GIVE_UP_S):
                while not (await self.rows("SELECT error FROM job WHERE state = 'failed'")):
                    await asyncio.sleep(0.02)
        [(error, attempts)] = await self.rows(
            "SELECT error, attempts FROM job WHERE id = ?", job_id
        )
        assert attempts == 1
        return str(error)
