"""The workers stop, also those that were just given a job."""

import asyncio
import json
from pathlib import Path
from typing import Any

from gateway.pool import Pool, Taken
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Asked

REGISTRY = "tests.services.job_kinds:registry"
GIVE_UP_S = 10


class Late(Database):
    """A database whose claims are committed, and whose worker hears of them when it may."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.claimed = asyncio.Event()
        self.may_hear = asyncio.Event()

    async def write_together(self, work: Any, item: Any) -> Any:
        result = await super().write_together(work, item)
        if isinstance(result, Taken) and result.claimed:
            self.claimed.set()
            await self.may_hear.wait()
        return result


async def test_a_job_that_was_claimed_while_the_stop_began_is_given_back(tmp_path: Path) -> None:
    database = await Late.open(str(tmp_path / "fieldpost.db"))
    assert isinstance(database, Late)
    pool = Pool(database, REGISTRY, {"folder": str(tmp_path)}, workers=1)
    asked = Asked("act", json.dumps({"do": "wait", "mark": "a", "seconds": 60}))
    await database.write(lambda c: pool.queue.enqueue(c, asked, Instant.now().wall_ms))
    running = asyncio.create_task(pool.run())
    await asyncio.wait_for(database.claimed.wait(), GIVE_UP_S)
    await pool.stop(0)
    database.may_hear.set()
    await asyncio.wait_for(running, GIVE_UP_S)
    row = await database.one("SELECT state, attempts, crashes FROM job")
    await database.close()
    assert row is not None
    assert tuple(row) == ("pending", 0, 0)
