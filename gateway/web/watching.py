"""What only watches: the stream of changes and the metrics, and what they hear from."""

import asyncio
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from gateway.events import Bus
from gateway.metrics import Metrics
from gateway.store.database import Database
from gateway.tail import Tail
from gateway.web.changes import Changes
from gateway.web.metrics import Exposition
from gateway.web.stream import Stream


class Watching:
    """Connects them, and runs their loops while the application does."""

    def __init__(self, db: Database, bus: Bus, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        self._bus = bus
        self._metrics = metrics
        self._tail = Tail(db)
        self._changes = Changes()
        self.stream = Stream(self._changes, on_dropped=metrics.viewer_dropped)
        self.exposition = Exposition(db, metrics, self._changes, now_ms)
        self._tail.subscribe(metrics.moved)
        self._tail.subscribe(self._changes.moved, lambda: self._changes.is_awake)

    def join(self, app: web.Application) -> None:
        """Begin, end the streams, and end with the application."""
        app.cleanup_ctx.append(self._at_work)
        app.on_shutdown.append(self._end_streams)

    async def _at_work(self, _: web.Application) -> AsyncIterator[None]:
        await self._tail.begin()
        hearers = (self._metrics.hear, self._changes.hear, self._tail.hint)
        leave = [self._bus.subscribe(hearer) for hearer in hearers]
        loops = [self._tail.run, self._changes.tick, self._metrics.measure]
        tasks = [asyncio.create_task(loop()) for loop in loops]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for unsubscribe in leave:
            unsubscribe()

    async def _end_streams(self, _: web.Application) -> None:
        self.stream.end()
