"""The reaper: takes back jobs whose worker is gone, follows the clock, and prunes what is old.

A plain task, on from the start, every second: not a job, for then it could get stuck as one.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from gateway import moves
from gateway.errors import Unavailable
from gateway.events import Bus
from gateway.states import State
from gateway.store import job_pages, jobs, queries
from gateway.store.clock import STEP_MS, Instant
from gateway.store.database import Database
from gateway.store.jobs import Queue

log = logging.getLogger(__name__)

LOOK_S = 1.0
PRUNE_S = 60.0
_DAY_MS = 24 * 3600 * 1000
_STEP_ROWS = 500


@dataclass(frozen=True)
class Keep:
    """How long what is over is kept, in days."""

    done_days: float = 7
    failed_days: float = 30
    events_days: float = 30


class Reaper:
    """Watches the queue of one database. Several may; each rescue is done by one of them.

    Args:
        wake: called when something was taken back that may be done now.
        bus: is told each rescue.
    """

    def __init__(
        self,
        database: Database,
        queue: Queue,
        now: Callable[[], Instant],
        *,
        keep: Keep = Keep(),
        wake: Callable[[], None] = lambda: None,
        bus: Bus | None = None,
    ) -> None:
        self._database = database
        self._queue = queue
        self._now = now
        self._keep = keep
        self._wake = wake
        self._bus = bus or Bus()
        self._offset_ms: int | None = None

    async def run(self) -> None:
        """Look every second until cancelled; prune every minute."""
        looks = 0
        while True:
            try:
                await self.run_once()
                if looks % int(PRUNE_S / LOOK_S) == 0:
                    await self.prune()
            except (Unavailable, sqlite3.Error) as error:
                log.warning("the reaper has to wait: %s", error)
            looks += 1
            await asyncio.sleep(LOOK_S)

    async def run_once(self) -> list[int]:
        """Take back what has lost its worker; return the ids."""
        now = self._now()
        stepped = self._offset_ms is None or abs(now.offset_ms - self._offset_ms) >= STEP_MS
        self._offset_ms = now.offset_ms
        expired = queries.load("jobs").expired
        if not stepped and not await self._database.all(expired, (now.wall_ms,)):
            return []
        rescued = await self._database.write(lambda c: self._queue.rescue(c, self._now()))
        if rescued or stepped:
            self._wake()
        if rescued and self._bus.is_watched:
            rows = await job_pages.some(self._database, rescued)
            for row in rows.values():
                self._bus.publish(moves.of_rescue(row))
        return rescued

    async def prune(self) -> int:
        """Delete what was kept long enough, a bounded piece at a time; return how many rows."""
        now_ms = self._now().wall_ms
        over = frozenset({State.DONE, State.DISCARDED})
        failed = frozenset({State.FAILED})
        done_before, failed_before, events_before = (
            now_ms - int(days * _DAY_MS)
            for days in (self._keep.done_days, self._keep.failed_days, self._keep.events_days)
        )
        steps: list[Callable[[sqlite3.Connection], int]] = [
            lambda c: jobs.prune(c, over, done_before, _STEP_ROWS),
            lambda c: jobs.prune(c, failed, failed_before, _STEP_ROWS, now_ms),
            lambda c: jobs.prune_events(c, events_before, _STEP_ROWS),
        ]
        total = 0
        for step in steps:
            while removed := await self._database.write(step):
                total += removed
        return total
