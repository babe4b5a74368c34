"""The tail: tells the front each move of each job, whichever process made it.

The bus knows only what its own process did; other workers, and the command line, work on the same
file. So whoever needs all moves, the stream of the page and the counters, hears them from here and
from nowhere else, and each move once (docs/decisions.md).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress

from gateway.errors import Unavailable
from gateway.events import Event, JobEvent
from gateway.store import moves
from gateway.store.database import Database
from gateway.store.moves import Move, Progress

log = logging.getLogger(__name__)

LOOK_S = 0.5
GATHER_S = 0.05  # what is made in a rush is read together

Listener = Callable[[Sequence[Move]], None]


class Tail:
    """Follows the table of moves from where it ends when it `begin`s."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Listener] = []
        self._number = 0
        self._progress: dict[int, Progress] = {}
        self._news = asyncio.Event()
        self._wants_progress: Callable[[], bool] = lambda: False

    def subscribe(
        self, listener: Listener, wants_progress: Callable[[], bool] | None = None
    ) -> None:
        """Tell `listener` of all moves from now on, and of progress while that is wanted."""
        self._listeners.append(listener)
        if wants_progress is not None:
            self._wants_progress = wants_progress

    def hint(self, event: Event) -> None:
        """Look at once: a job of this process made a move. To be subscribed to the bus."""
        if isinstance(event, JobEvent):
            self._news.set()

    async def begin(self) -> None:
        """What is there by now is not told."""
        self._number = await moves.newest(self._database)

    async def run(self) -> None:
        """Look twice a second, and when there is a hint, until cancelled."""
        while True:
            try:
                await self.run_once()
            except (Unavailable, sqlite3.Error) as error:
                log.warning("the moves of the jobs can not be read just now: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._news.wait()
                    await asyncio.sleep(GATHER_S)
            self._news.clear()

    async def run_once(self) -> None:
        """Tell what is new."""
        newest = await moves.newest(self._database)
        if newest < self._number:  # the file was replaced by a new one
            self._number = 0
        while self._number < newest:
            self._number, found = await moves.after(self._database, self._number)
            if not found:  # pruned meanwhile
                self._number = newest
            self._tell(found)
        await self._look_at_progress()

    async def _look_at_progress(self) -> None:
        if not self._wants_progress():
            return
        known, self._progress = self._progress, await moves.progress(self._database)
        changed = [
            moves.renewed(job_id, progress)
            for job_id, progress in self._progress.items()
            if known.get(job_id) != progress
        ]
        self._tell(changed)

    def _tell(self, found: Sequence[Move]) -> None:
        for listener in self._listeners if found else ():
            try:
                listener(found)
            except Exception:
                log.exception("who listens to the moves of jobs failed")
