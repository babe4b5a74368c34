"""The real kinds of jobs on a real database, by workers whose waits are none."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from gateway.handlers import REGISTRY
from gateway.pool import Pool
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Asked

GIVE_UP_S = 40


@dataclass
class Errands:
    """A pool at work, and what asks it for jobs."""

    db: Database
    pool: Pool

    async def ask(self, kind: str, crashes: int = 0, **args: Any) -> int:
        asked = Asked(kind, msgspec.json.encode(args).decode(), request_id="r1")

        def enqueue(connection: Any) -> int:
            job_id, _ = self.pool.queue.enqueue(connection, asked, Instant.now().wall_ms)
            connection.execute("UPDATE job SET crashes = ? WHERE id = ?", (crashes, job_id))
            return int(job_id)

        job_id = await self.db.write(enqueue)
        self.pool.wake()
        return job_id

    async def ended(self, job_id: int) -> dict[str, Any]:
        return await self.until(job_id, lambda job: job["state"] not in ("pending", "running"))

    async def until(self, job_id: int, wanted: Any) -> dict[str, Any]:
        """Wait until the job's row is as wanted."""
        async with asyncio.timeout(GIVE_UP_S):
            while True:
                row = await self.db.one("SELECT * FROM job WHERE id = :id", {"id": job_id})
                assert row is not None
                if wanted(dict(row)):
                    return dict(row)
                await asyncio.sleep(0.02)

    async def retry(self, job_id: int) -> None:
        """Try again, as a person asks for it."""
        await self.db.write(lambda c: self.pool.queue.retry(c, job_id, Instant.now().wall_ms))
        self.pool.wake()

    async def scalar(self, sql: str) -> Any:
        row = await self.db.one(sql)
        return None if row is None else row[0]


@asynccontextmanager
async def errands(folder: Path, **settings: Any) -> AsyncIterator[Errands]:
    db = await Database.open(str(folder / "fieldpost.db"))
    pool = Pool(db, REGISTRY, {"folder": str(folder), "min_free_bytes": 0} | settings, workers=2)
    pool.queue = replace(pool.queue, random=lambda: -0.9999)
    running = asyncio.create_task(pool.run())
    try:
        yield Errands(db, pool)
    finally:
        await pool.stop(0)
        await running
        await db.close()


def child_pids() -> list[int]:
    """Return the processes that do jobs for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        if parent == os.getpid() and b"gateway.child" in command:
            found.append(int(folder.name))
    return found
