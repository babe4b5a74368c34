"""`/healthz`: the process is alive. `/readyz`: it can do its work."""

import asyncio
import time
from collections.abc import Callable

from aiohttp import web

from gateway.errors import Unavailable
from gateway.store import pages
from gateway.store.database import Database
from gateway.web.disk import Disk

# Anyone may ask, so asking often must cost nothing: one answer is good this long.
_GOOD_FOR_S = 1.0
_WRITE_TIMEOUT_S = 2.0


class Health:
    """Answers whoever watches the gateway."""

    def __init__(
        self, db: Database, disk: Disk, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._disk = disk
        self._monotonic = monotonic
        self._one_at_a_time = asyncio.Lock()
        self._looked_at = float("-inf")
        self._trouble: Unavailable | None = None

    async def alive(self, request: web.Request) -> web.Response:
        return web.Response(body=b'{"alive":true}', content_type="application/json")

    async def ready(self, request: web.Request) -> web.Response:
        trouble = await self.trouble()
        if trouble is not None:
            raise Unavailable(trouble.detail, trouble.retry_after_s)
        return web.Response(body=b'{"ready":true}', content_type="application/json")

    async def trouble(self) -> Unavailable | None:
        """Return why no reading can be stored just now, None if it can; at most 1 s old."""
        async with self._one_at_a_time:
            if self._monotonic() - self._looked_at >= _GOOD_FOR_S:
                self._trouble = await self._find_trouble()
                self._looked_at = self._monotonic()
            return self._trouble

    async def _find_trouble(self) -> Unavailable | None:
        try:
            self._disk.require_room()
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await pages.probe_write(self._db)
        except Unavailable as trouble:
            return trouble
        except TimeoutError:
            return Unavailable(f"a write to the database took longer than {_WRITE_TIMEOUT_S:g} s")
        return None
