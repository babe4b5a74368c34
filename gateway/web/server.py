"""Serves the application as aiohttp must be told to, and answers what aiohttp itself refuses."""

import asyncio
import logging
import sys
from typing import Any

from aiohttp import web

from gateway.web import problem
from gateway.web.envelope import PROTOCOL, request_id_of, stamp

if sys.platform != "win32":
    import resource

log = logging.getLogger(__name__)

_MOST_CONNECTIONS = 4000
_OTHER_FILES = 64  # database, log, and those that are just being hung up on

OPTIONS: dict[str, Any] = {
    "auto_decompress": False,  # would hide the signed bytes, and answers 500 to a torn body
    "access_log": None,  # costs a third of the throughput; the envelope writes a line of its own
    "keepalive_timeout": 75.0,  # also the time that a head may take to arrive
    "lingering_time": 2.0,  # after an answer that came before the end of the body
}


class Runner(web.AppRunner):
    """Runs `application` as its only use needs it. `stop_timeout_s`: for requests under way."""

    def __init__(self, application: web.Application, *, stop_timeout_s: float) -> None:
        super().__init__(application, shutdown_timeout=stop_timeout_s, **OPTIONS)

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        return _Server(plain.request_handler, request_factory=plain.request_factory, **self._kwargs)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    """One connection. What no handler of ours ever saw leaves as a problem all the same."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take it, or hang up at once when there are so many that files could run out."""
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        assert self._manager is not None
        if len(self._manager.connections) > _most_connections():
            transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP; that is the caller's affair and no fault to log whole."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        log.info("%s sent what is not HTTP: %s", request.remote, message)
        return _own(status, "this is not HTTP/1.1", request)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the answer; one that is aiohttp's own becomes like all others."""
        if PROTOCOL not in resp.headers:
            resp = _own(resp.status, resp.reason, request)
        return await super().finish_response(request, resp, start_time)


def _most_connections() -> int:
    """Return how many connections this process can hold and still open its other files."""
    if sys.platform == "win32":
        return _MOST_CONNECTIONS
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHER_FILES, _MOST_CONNECTIONS)


def _own(status: int, detail: str, request: web.BaseRequest) -> web.Response:
    request_id = request_id_of(request)
    response = problem.answer(status, detail, request_id)
    stamp(response, request_id)
    response.force_close()
    return response
