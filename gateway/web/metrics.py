"""`GET /metrics`: the numbers, for Prometheus."""

from collections.abc import Callable

from aiohttp import web

from gateway.metrics import Metrics
from gateway.store import gauges
from gateway.store.database import Database
from gateway.web.changes import Changes

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    def __init__(
        self,
        db: Database,
        metrics: Metrics,
        changes: Changes,
        now_ms: Callable[[], int],
    ) -> None:
        self._db = db
        self._metrics = metrics
        self._changes = changes
        self._now_ms = now_ms

    async def get(self, request: web.Request) -> web.Response:
        found = await gauges.read(self._db, self._now_ms())
        text = self._metrics.exposition(found, self._changes.viewers)
        headers = {"Content-Type": _CONTENT_TYPE, "Cache-Control": "no-store"}
        return web.Response(body=text, headers=headers)
