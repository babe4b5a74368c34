"""Retention: takes away what was kept as long as the configuration says.

A plain task beside the reaper. Its pieces are bounded and share the writer with the deliveries;
after each it leaves the writer to them for as long as it has used it.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from gateway import leftovers
from gateway.errors import Unavailable
from gateway.store import facts, retention
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.facts import Fact
from gateway.tables import Retention as Kept

log = logging.getLogger(__name__)

LOOK_S = 60.0
LOOKS_FOR_AGGREGATES = 60  # these and the files are looked at once an hour
_SHORTEST_PAUSE_S = 0.002
# A clock that leaps ahead by more than this is believed after it has held for as long.
_LEAP_MS = DAY_MS

Piece = Callable[[sqlite3.Connection], int]


class Retention:
    """Keeps one database, and the files beside it, as small as was asked for.

    Args:
        folder: of the database; None: there are no files.
        reports_days: for which the files that jobs made are kept, as the jobs are.
    """

    def __init__(
        self,
        database: Database,
        kept: Kept,
        now: Callable[[], Instant],
        *,
        folder: Path | None = None,
        reports_days: float = 7.0,
    ) -> None:
        self._database = database
        self._kept = kept
        self._now = now
        self._folder = folder
        self._reports_days = reports_days
        self._looks = 0
        self._leapt_at_ms: int | None = None  # by the monotonic clock
        self._has_told = False

    async def run(self) -> None:
        """Look every minute until cancelled."""
        while True:
            try:
                await self.run_once()
            except (Unavailable, sqlite3.Error, OSError) as error:
                log.warning("retention has to wait: %s", error)
            await asyncio.sleep(LOOK_S)

    async def run_once(self) -> int:
        """Take away all that is old; return how many readings that were."""
        now = self._now()
        if not await self._believes(now):
            return 0
        pruned = 0
        if self._kept.readings_days is not None:
            before_ms = now.wall_ms - int(self._kept.readings_days * DAY_MS)
            pruned += await self._prune_readings(before_ms, now.wall_ms)
        if self._kept.database_bytes is not None:
            pruned += await self._prune_to_size(self._kept.database_bytes, now.wall_ms)
        if self._kept.quarantine_days is not None:
            before_ms = now.wall_ms - int(self._kept.quarantine_days * DAY_MS)
            await self._all_of(
                partial(retention.prune_quarantine, before_ms=before_ms, now_ms=now.wall_ms)
            )
        if self._looks % LOOKS_FOR_AGGREGATES == 0:
            await self._prune_what_was_made(now.wall_ms)
        self._looks += 1
        return pruned

    async def _believes(self, now: Instant) -> bool:
        """Return whether the wall clock may be gone by: what is taken away does not come back."""
        believed = await facts.get(self._database, facts.RETENTION_CLOCK)
        up_ms = now.wall_ms - now.offset_ms
        if believed is not None and now.wall_ms - believed.at_ms > _LEAP_MS:
            if self._leapt_at_ms is None:
                log.warning("the clock is a day or more ahead: retention waits for a day")
                self._leapt_at_ms = up_ms
            if up_ms - self._leapt_at_ms < _LEAP_MS:
                return False
        self._leapt_at_ms = None
        if believed is None or abs(now.wall_ms - believed.at_ms) > HOUR_MS:
            fact = Fact("", now.wall_ms)
            await self._database.write(lambda c: facts.put(c, facts.RETENTION_CLOCK, fact))
        return True

    async def _prune_readings(self, before_ms: int, now_ms: int) -> int:
        """Take away the readings that came before `before_ms`; return how many."""
        pruned = 0
        async for upto in self._old(before_ms, now_ms):
            pruned += await self._all_of(partial(retention.prune_readings, upto=upto))
        return pruned

    async def _prune_to_size(self, most_bytes: int, now_ms: int) -> int:
        """Take away the oldest readings until the file fits; those of the last day stay."""
        pruned = 0
        async for upto in self._old(now_ms - DAY_MS, now_ms):
            if (await retention.size(self._database)).used_bytes <= most_bytes:
                break
            pruned += await self._all_of(partial(retention.prune_readings, upto=upto))
        used_bytes = (await retention.size(self._database)).used_bytes
        if used_bytes <= most_bytes:
            self._has_told = False
        else:
            self._tell_that_it_does_not_fit(used_bytes, most_bytes)
        return pruned

    async def _old(self, before_ms: int, now_ms: int) -> AsyncIterator[int]:
        """Yield up to which arrival all came before `before_ms`, further and further."""
        after = await retention.first_arrival(self._database) - 1
        while True:
            old = await retention.old_readings(self._database, after, before_ms, now_ms)
            if old.upto is not None:
                yield old.upto
            if old.seen is None or old.met_young:
                return
            after = old.seen

    def _tell_that_it_does_not_fit(self, used_bytes: int, most_bytes: int) -> None:
        if not self._has_told:
            log.warning(
                "the database holds %d bytes, %d are allowed, and no reading in it is older than a"
                " day: raise database_bytes, or measure less often", used_bytes, most_bytes,
            )  # fmt: skip
        self._has_told = True

    async def _prune_what_was_made(self, now_ms: int) -> None:
        spans = ((HOUR_MS, self._kept.hourly_days), (DAY_MS, self._kept.daily_days))
        for span_ms, days in spans:
            if days is not None:
                before_ms = now_ms - int(days * DAY_MS)
                await self._all_of(
                    partial(retention.prune_aggregates, span_ms=span_ms, before_ms=before_ms)
                )
        if self._folder is not None:
            await leftovers.remove(self._database, self._folder, self._reports_days, now_ms)

    async def _all_of(self, piece: Piece) -> int:
        """Do a piece after the other until one finds nothing; return how many rows went."""
        total = 0
        while True:
            began = time.monotonic()
            removed = await self._database.write(piece)
            total += removed
            if not removed:
                return total
            await asyncio.sleep(max(time.monotonic() - began, _SHORTEST_PAUSE_S))
