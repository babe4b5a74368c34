"""`GET /v1/events`: tells a page which of its parts changed, as it happens (server-sent events)."""

import asyncio
import json
import random
import socket
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any

from aiohttp import web
from aiohttp_sse import EventSourceResponse

from gateway.errors import Unavailable
from gateway.web.changes import Changes
from gateway.web.envelope import stamp
from gateway.web.exchange import REQUEST_ID

MOST_VIEWERS = 256
KEEP_ALIVE_S = 15.0
SLOW_S = 5.0  # for what is written to be taken
GRACE_S = 1.0  # for the last word to one that was slow, and at the stop
GONE_S = 60.0  # unacknowledged for so long: the system itself ends the connection
HELD_BYTES = 32 * 1024  # of each viewer, in the system's buffer and, as much, in ours
LONGEST_S = 3600.0  # then a viewer comes again, and is asked again who it is
_COME_BACK_MS = (1000, 4000)  # not all in the same moment after a restart

_encode = lru_cache(maxsize=8)(json.dumps)  # most viewers are told the same


class Stream:
    """Tells each viewer of the changes that it has not been told of.

    Args:
        slow_s: how long a viewer may take to take what is written.
        keep_alive_s: between comments, which show to both sides that the other is there.
        on_dropped: called for each viewer that was too slow.
    """

    def __init__(
        self,
        changes: Changes,
        *,
        slow_s: float = SLOW_S,
        keep_alive_s: float = KEEP_ALIVE_S,
        on_dropped: Callable[[], None] = lambda: None,
    ) -> None:
        self._changes = changes
        self._slow_s = slow_s
        self._keep_alive_s = keep_alive_s
        self._on_dropped = on_dropped
        self._open: set[_Writing] = set()

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Answer with a stream that ends when the gateway stops, or the viewer is too slow."""
        if self._changes.is_over:
            raise Unavailable("the gateway is stopping", retry_after_s=5)
        if self._changes.viewers >= MOST_VIEWERS:
            raise Unavailable(f"{MOST_VIEWERS} pages are being told already", retry_after_s=30)
        if request.method == "HEAD":
            return web.Response(content_type="text/event-stream")
        response = EventSourceResponse(ping_interval=self._keep_alive_s, send_timeout=GONE_S)
        stamp(response, request[REQUEST_ID])
        _hold_little(request)
        with self._changes.watched():
            await response.prepare(request)
            async with response:
                await self._serve(request, response)
        response.force_close()
        return response

    def end(self) -> None:
        """Say goodbye to all; soon after, hang up on those who do not take it."""
        self._changes.close()
        asyncio.get_running_loop().call_later(GRACE_S, self._hang_up)

    def _hang_up(self) -> None:
        for writing in self._open:
            writing.hang_up()

    async def _serve(self, request: web.Request, response: EventSourceResponse) -> None:
        writing = _Writing(request, response)
        self._open.add(writing)
        try:
            reason = await self._tell(request, writing)
            await writing.send(GRACE_S, _goodbye(reason), event="goodbye")
        except _TooSlow:
            self._on_dropped()
            await self._drop(writing)
        except ConnectionError:
            pass  # it went away
        finally:
            self._open.discard(writing)
            await writing.close()

    async def _tell(self, request: web.Request, writing: "_Writing") -> str:
        """Tell until there is a reason to end; return it. Raises _TooSlow, ConnectionError."""
        clock = asyncio.get_running_loop().time
        until = clock() + LONGEST_S
        number = self._changes.number_of(request.headers.get("Last-Event-ID", ""))
        while not self._changes.is_over:
            change = self._changes.after(number)
            if change is None:
                await self._changes.news()
                continue
            retry_ms = random.randint(*_COME_BACK_MS) if number is None else None
            id_, data = self._changes.id_of(change), _data(change.parts)
            if not await writing.send(self._slow_s, data, event="changed", id=id_, retry=retry_ms):
                raise _TooSlow
            number = change.number
            if clock() > until:
                return "come again"
        return "the gateway is stopping"

    async def _drop(self, writing: "_Writing") -> None:
        """Say why, behind all that it has not taken yet; then hang up, whether it heard or not."""
        if await writing.send(GRACE_S, _goodbye("too slow"), event="goodbye"):
            await writing.end(GRACE_S)
        writing.hang_up()


class _TooSlow(Exception):
    """A viewer does not take what is written."""


class _Writing:
    """What is being written to one viewer.

    Each write is a task of its own, and is never cancelled: aiohttp's next write would be taken
    for cancelled too.
    """

    def __init__(self, request: web.Request, response: EventSourceResponse) -> None:
        self._request = request
        self._response = response
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, within_s: float, data: str, **fields: Any) -> bool:
        """Send a message; return whether it was taken in that time. Raises ConnectionError."""
        return await self._do(self._response.send(data, **fields), within_s)

    async def end(self, within_s: float) -> bool:
        """Write the end; return whether all was taken in that time. Raises ConnectionError."""
        if self._request.transport is not None:
            self._request.transport.set_write_buffer_limits(high=0)  # so it waits for the rest too
        return await self._do(self._response.write_eof(), within_s)

    def hang_up(self) -> None:
        """End the connection without waiting for the viewer to take what was written."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def close(self) -> None:
        """Leave no write behind: one that is not taken ends with the connection."""
        if self._tasks:
            self.hang_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _do(self, write: Coroutine[Any, Any, None], within_s: float) -> bool:
        task = asyncio.create_task(write)
        self._tasks.add(task)
        await asyncio.wait({task}, timeout=within_s)
        if not task.done():
            return False
        self._tasks.discard(task)
        task.result()
        return True


def _data(parts: tuple[str, ...]) -> str:
    return '{"parts": ' + _encode(parts) + "}"


def _goodbye(reason: str) -> str:
    return json.dumps({"reason": reason})


def _hold_little(request: web.Request) -> None:
    """Bound what is held for a viewer that does not read, and so notice it soon."""
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the viewer went away")
    transport.set_write_buffer_limits(high=HELD_BYTES)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HELD_BYTES)
