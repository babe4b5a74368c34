"""The composition root: opens the parts, wires them, runs them, closes them on every way out."""

import logging
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path

from aiohttp import web as http

from gateway import links, listener, master, move_log, notify, stopping, web
from gateway.config import Config
from gateway.crew import Crew
from gateway.errors import Unavailable
from gateway.events import Bus
from gateway.handlers import REGISTRY
from gateway.ingest import Ingest
from gateway.metrics import Metrics
from gateway.opening import database
from gateway.sensor_cap import SensorCap
from gateway.store import devices, sessions
from gateway.store.database import Database
from gateway.work import work as work  # the other thing that a process of ours can do

log = logging.getLogger(__name__)


def now_ms() -> int:
    """Return the wall clock in ms, Unix epoch, UTC."""
    return time.time_ns() // 1_000_000


async def serve(
    config: Config,
    door: Callable[[Database, Bus, SensorCap], Ingest] = Ingest,
    registry: str = REGISTRY,
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
        keys = await master.keys_of(config, db)
        bus = Bus()
        bus.subscribe(move_log.watch)
        crew = Crew(config, db, is_front=True, registry=registry, bus=bus)
        metrics = Metrics(crew.pool.kinds)
        db.tell_of_commits(metrics.committed)
        application = web.application(
            db=db,
            ingest=door(db, bus, SensorCap(db, config.max_sensors)),
            config=config,
            keys=keys,
            now_ms=now_ms,
            queue=crew.pool.queue,
            kinds=crew.pool.kinds,
            wake=crew.pool.wake,
            stopping=stop,
            bus=bus,
            metrics=metrics,
        )
        await parts.enter_async_context(crew.at_work(stop))
        await parts.enter_async_context(_answering(application, port, tls, config))
        if config.serial:
            await parts.enter_async_context(_on_cables(application, config))
        await _announce(config, port, db, registered)
        await parts.enter_async_context(notify.supervised(db, os.environ))
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


@asynccontextmanager
async def _on_cables(application: http.Application, config: Config) -> AsyncIterator[None]:
    from gateway import serial_port  # whoever has no cable need not have what it stands on

    locks = (config.folder or Path("data")) / "ports"
    ports = serial_port.Ports(config.serial, application[web.FRONT], locks)
    async with serial_port.attended(ports):
        yield


async def _announce(config: Config, port: socket.socket, db: Database, registered: int) -> None:
    host, number = port.getsockname()[:2]
    scheme = "https" if config.tls_cert else "http"
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{number}"
    _say(f"listening on {address}/ (status page: {address}/status)")
    for line in notices(config, registered):
        _say(line)
    if not config.open_lan:
        await _offer_log_in(links.base(config, host, number), db)


async def _offer_log_in(base: str, db: Database) -> None:
    try:
        link = links.path(await sessions.make_link(db, now_ms()))
    except Unavailable as error:
        _say(f"no log-in link: {error.detail}; `python -m gateway login` makes one later")
        return
    _say(f"log in once, within 10 minutes: {base}{link}")


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
