"""The aggregator: keeps the hours and days that charts read at most 1 s behind the readings.

A plain task beside ingest. Its steps are bounded and share the writer with the deliveries; while
it has to catch up it leaves the writer to them for as long as it has used it.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from gateway.errors import Unavailable
from gateway.store import aggregates
from gateway.store.database import Database

log = logging.getLogger(__name__)

LOOK_S = 0.5
_SHORTEST_PAUSE_S = 0.005


class Aggregator:
    """Follows the readings of one database. Several may: the cursor tells each where to go on.

    Args:
        settings: `calibration` of them, see `aggregates.calibration_of`. It is applied to what
            arrives from now on; what was counted before is made anew by `recalculate_chart`.
        rows: that one step counts.
    """

    def __init__(
        self,
        database: Database,
        settings: Mapping[str, Any] | None = None,
        *,
        rows: int = aggregates.STEP_ROWS,
    ) -> None:
        self._database = database
        self._calibration = aggregates.calibration_of(settings or {})
        self._rows = rows

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            began = time.monotonic()
            try:
                is_behind = await self.run_once() >= self._rows
            except (Unavailable, sqlite3.Error) as error:
                log.warning("the aggregates have to wait: %s", error)
                is_behind = False
            used_s = time.monotonic() - began
            await asyncio.sleep(max(used_s, _SHORTEST_PAUSE_S) if is_behind else LOOK_S)

    async def run_once(self) -> int:
        """Take one step, if there is anything new; return how many arrivals are behind it."""
        if not await aggregates.has_news(self._database):
            return 0
        return await self._database.write(self._step)

    def _step(self, connection: sqlite3.Connection) -> int:
        return aggregates.follow(connection, self._calibration, self._rows)
