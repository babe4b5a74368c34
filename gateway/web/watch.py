"""Waits for jobs: however many callers wait, their jobs are read together, by one short read."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable

from gateway.store import job_pages
from gateway.store.database import Database

LOOK_S = 0.1


class Watch:
    """Looks every 100 ms at the jobs that somebody waits for, and at none if nobody does.

    Args:
        stopping: once it is set, nobody waits any more.
    """

    def __init__(self, db: Database, stopping: asyncio.Event) -> None:
        self._db = db
        self._stopping = stopping
        self._wanted: set[int] = set()  # by whom waits for the look that is coming
        self._coming: asyncio.Task[dict[int, sqlite3.Row]] | None = None
        self._looks: set[asyncio.Task[dict[int, sqlite3.Row]]] = set()

    async def until(
        self, over: Callable[[sqlite3.Row], bool], row: sqlite3.Row, wait_s: float
    ) -> sqlite3.Row:
        """Return the job's row as soon as `over` says so, or as it is after `wait_s`."""
        clock = asyncio.get_running_loop().time
        last_look = clock() + wait_s - LOOK_S
        while not over(row) and not self._stopping.is_set() and clock() <= last_look:
            rows = await self._look(row["id"])
            if row["id"] not in rows:  # pruned meanwhile
                break
            row = rows[row["id"]]
        return row

    async def close(self) -> None:
        """Wait for the last look, which needs the database."""
        await asyncio.gather(*self._looks, return_exceptions=True)

    async def _look(self, id: int) -> dict[int, sqlite3.Row]:
        if self._coming is None:
            self._coming = asyncio.create_task(self._next())
            self._looks.add(self._coming)
            self._coming.add_done_callback(self._looks.discard)
        self._wanted.add(id)
        return await asyncio.shield(self._coming)  # others wait for it too

    async def _next(self) -> dict[int, sqlite3.Row]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self._stopping.wait()
        ids, self._wanted, self._coming = self._wanted, set(), None
        return await job_pages.some(self._db, ids)
