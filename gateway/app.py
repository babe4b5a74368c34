"""The composition root: opens the parts, wires them, runs them, closes them on every way out."""

import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress

from aiohttp import web as http

from gateway import listener, stopping, web
from gateway.config import Config
from gateway.crew import Crew
from gateway.errors import Misconfigured
from gateway.handlers import REGISTRY
from gateway.ingest import Ingest
from gateway.keys import MASTER_KEY, Keys
from gateway.opening import database
from gateway.store import devices
from gateway.store.database import Database
from gateway.work import work as work  # the other thing that a process of ours can do

log = logging.getLogger(__name__)


def now_ms() -> int:
    """Return the wall clock in ms, Unix epoch, UTC."""
    return time.time_ns() // 1_000_000


async def serve(
    config: Config, door: Callable[[Database], Ingest] = Ingest, registry: str = REGISTRY
) -> int:
    """Run the gateway until a signal stops it; return the exit code.

    Args:
        door: makes the one door for readings; the benches put one there that stores nothing.
        registry: `module:function` that returns the kinds of jobs.

    Raises:
        Misconfigured: it can not start like this. All that was opened is closed again.
    """
    stop = stopping.on_signals()
    async with AsyncExitStack() as parts:
        # What can be refused without touching the database comes first.
        tls = _certificate(config)
        port = parts.enter_context(closing(listener.bind(config.host, config.port)))
        db = await parts.enter_async_context(database(config))
        registered = await devices.count_keyed(db)
        keys = open_keys(config, registered)
        crew = Crew(config, db, is_front=True, registry=registry)
        application = web.application(
            db=db,
            ingest=door(db),
            config=config,
            keys=keys,
            now_ms=now_ms,
            queue=crew.pool.queue,
            kinds=crew.pool.kinds,
            wake=crew.pool.wake,
            stopping=stop,
        )
        await parts.enter_async_context(crew.at_work(stop))
        await parts.enter_async_context(_answering(application, port, tls, config))
        _announce(config, port, registered)
        await stop.wait()  # from here on requests and jobs come to their end side by side
        log.info(
            "stopping; requests under way have %g s, jobs %g s",
            config.stop_timeout_s,
            config.drain_timeout_s,
        )
    return 0


def _certificate(config: Config) -> ssl.SSLContext | None:
    if config.tls_cert is None or config.tls_key is None:
        return None
    return listener.certificate(config.tls_cert, config.tls_key)


@asynccontextmanager
async def _answering(
    application: http.Application,
    port: socket.socket,
    tls: ssl.SSLContext | None,
    config: Config,
) -> AsyncIterator[None]:
    runner = web.Runner(application, stop_timeout_s=config.stop_timeout_s)
    await runner.setup()
    try:
        await http.SockSite(runner, port, ssl_context=tls, backlog=128).start()
        yield
    finally:
        await runner.cleanup()


def open_keys(config: Config, registered: int) -> Keys:
    """Return the keys, made when missing and `registered`, the number of devices with one, is 0.

    Raises:
        Misconfigured: a new master key would make their keys void; or see `Keys.open`.
    """
    if config.folder is None or not registered or (config.folder / MASTER_KEY).exists():
        return Keys.open(config.folder)
    raise Misconfigured(
        f"{config.folder / MASTER_KEY} is missing, and the keys of {registered} devices are made of"
        " it: bring it back. If it is gone for good, put 64 new hex digits there (openssl rand -hex"
        " 32), and give every board the key that `devices add` prints then"
    )


def _announce(config: Config, port: socket.socket, registered: int) -> None:
    scheme = "https" if config.tls_cert else "http"
    host, number = port.getsockname()[:2]
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{number}"
    _say(f"listening on {address}/ (status page: {address}/status)")
    for line in notices(config, registered):
        _say(line)


def notices(config: Config, registered: int) -> list[str]:
    """Return what an operator should know about this way to start, a line each."""
    lines = []
    if config.folder is None:
        lines.append("the database is in memory: everything is gone when this stops")
    if config.open_lan:
        lines.append("OPEN TO THE NETWORK: whoever reaches this port reads and writes without key")
    elif config.open:
        lines.append("open to this machine: its programs need no key; other machines do")
    elif not registered:
        lines.append(
            "no device has a key yet: python -m gateway devices add NAME --db " + config.db
        )
    if not config.workers:
        lines.append("takes in only: jobs wait until `python -m gateway work` does them")
    return lines


def _say(line: str) -> None:
    with suppress(OSError):  # a full disk behind stdout must not keep the gateway from starting
        print(f"fieldpost: {line}", flush=True)
