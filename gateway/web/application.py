"""Puts the web side together: the parts, the resources, and what each asks of its caller."""

import asyncio
from collections.abc import Callable
from functools import partial

import aiohttp_jinja2
import jinja2
from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.config import Config
from gateway.events import Bus
from gateway.ingest import Ingest
from gateway.keys import Keys
from gateway.kinds import Kinds
from gateway.metrics import Metrics
from gateway.store.database import Database
from gateway.store.jobs import Queue
from gateway.web import instants, openapi, status
from gateway.web.access import access
from gateway.web.alarms import Alarms
from gateway.web.desk import Desk
from gateway.web.devices import Devices
from gateway.web.disk import Disk
from gateway.web.envelope import Envelope
from gateway.web.front import Front
from gateway.web.gate import Need
from gateway.web.health import Health
from gateway.web.imports import Imports
from gateway.web.jobs import Asking, Deciding, Looking
from gateway.web.key_alarm import KeyAlarm
from gateway.web.quotas import Quotas
from gateway.web.readings import Delivery, Readings
from gateway.web.registering import Registering
from gateway.web.reports import Reports
from gateway.web.watch import Watch
from gateway.web.watching import Watching

FRONT = web.AppKey("front", Front)  # for those who do not come over HTTP

Resource = tuple[str, str, Handler, Need]


def application(
    *,
    db: Database,
    ingest: Ingest,
    config: Config,
    keys: Keys,
    now_ms: Callable[[], int],
    queue: Queue,
    kinds: Kinds,
    wake: Callable[[], None],
    stopping: asyncio.Event,
    disk: Disk | None = None,
    bus: Bus | None = None,
    metrics: Metrics | None = None,
) -> web.Application:
    """Return the application; `gateway.web.Runner` serves it.

    Args:
        now_ms: the wall clock, Unix epoch, UTC.
        kinds: of jobs that may be asked for.
        wake: called when a job was added; tells the workers of this process, if it has any.
        stopping: set when the gateway stops; then whoever waits for a job is answered.
        disk: another than the one that the database stands on.
        bus: is told of jobs that were asked for or decided about, and tells what else happens.
        metrics: counts what the bus and the other processes on the file tell.
    """
    disk = disk or Disk(config.folder, config.min_free_bytes)
    watch = Watch(db, stopping)
    bus = bus or Bus()
    metrics = metrics or Metrics(kinds)
    watching = Watching(db, bus, metrics, now_ms)
    desk = Desk(db, queue, wake, now_ms, bus)
    imports, deciding = Imports(desk, config, disk), Deciding(desk)
    asking = Asking(desk, kinds, watch, disk)
    health, readings = Health(db, disk), Readings(db)
    page = status.Given(
        db, config, health, kinds, asking, deciding, imports, readings, bus,
        metrics.snapshot, now_ms,
    )  # fmt: skip
    delivery = Delivery(ingest, disk, Quotas(db, config), config, now_ms)
    resources = [
        *_resources(db, delivery, readings, health, config),
        *_of_jobs(asking, Looking(db, watch), deciding),
        *status.resources(page),
        ("POST", "/v1/imports", imports.post, Need.OPERATE),
        ("GET", "/v1/imports/{id}", imports.get, Need.OPERATE),
        ("GET", "/v1/openapi.json", openapi.resource(kinds), Need.OPERATE),
        ("GET", "/v1/events", watching.stream.get, Need.OPERATE),
        ("GET", "/metrics", watching.exposition.get, Need.OPERATE),
    ]
    registering = Registering(db, keys, now_ms)
    key_alarm = KeyAlarm(db, now_ms)
    gate, forms, login, bodies = access(db, config, keys, key_alarm.tell, metrics.registry, now_ms)
    alarms = Alarms(db, bodies, now_ms)
    resources += [
        ("GET", "/v1/alarms", alarms.page, Need.OPERATE),
        ("POST", "/v1/alarms/{id}/acknowledge", alarms.acknowledge, Need.OPERATE),
        ("POST", "/v1/alarms/{id}/close", alarms.close, Need.OPERATE),
        ("POST", "/v1/devices", registering.add, Need.KEEP_KEYS),
        ("POST", "/v1/devices/{device}/rotate", registering.rotate, Need.KEEP_KEYS),
        ("POST", "/v1/devices/{device}/revoke", registering.revoke, Need.KEEP_KEYS),
        ("GET", "/login", login.show, Need.NOTHING),
        ("POST", "/login", login.log_in, Need.NOTHING),
        ("POST", "/logout", login.log_out, Need.ACT),
    ]
    needs = {handler: need for _method, _path, handler, need in resources}
    app = web.Application(middlewares=[Envelope(gate, needs, bodies, forms).around])
    for method, path, handler, _need in resources:
        add = app.router.add_get if method == "GET" else partial(app.router.add_route, method)
        add(path, handler)
    app[FRONT] = Front(gate, delivery)
    watching.join(app)
    app.on_cleanup.append(lambda _: watch.close())
    app.on_cleanup.append(lambda _: key_alarm.close())
    _set_up_pages(app)
    return app


def _resources(
    db: Database,
    delivery: Delivery,
    readings: Readings,
    health: Health,
    config: Config,
) -> list[Resource]:
    devices = Devices(db)
    return [
        ("POST", "/v1/readings", delivery.post, Need.DELIVER),
        ("GET", "/v1/readings", readings.get, Need.OPERATE),
        ("GET", "/v1/devices", devices.get, Need.OPERATE),
        ("GET", "/v1/reports/{name}", Reports(config.folder).get, Need.OPERATE),
        ("GET", "/", _to_status, Need.NOTHING),
        ("GET", "/healthz", health.alive, Need.NOTHING),
        ("GET", "/readyz", health.ready, Need.NOTHING),
    ]


def _of_jobs(asking: Asking, looking: Looking, deciding: Deciding) -> list[Resource]:
    return [
        ("POST", "/v1/jobs", asking.post, Need.ASK),
        ("GET", "/v1/jobs", looking.page, Need.FOLLOW),
        ("GET", "/v1/jobs/{id}", looking.one, Need.FOLLOW),
        ("POST", "/v1/jobs/{id}/retry", deciding.retry, Need.OPERATE),
        ("POST", "/v1/jobs/{id}/discard", deciding.discard, Need.OPERATE),
        ("POST", "/v1/jobs/{id}/cancel", deciding.cancel, Need.OPERATE),
    ]


def _set_up_pages(app: web.Application) -> None:
    loader = jinja2.PackageLoader(__package__, "page")
    environment = aiohttp_jinja2.setup(
        app, loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "iso": instants.iso,
        "ago": instants.ago,
        "known": lambda value: "unknown" if value is None else value,
        "range": _range,
    }


def _range(gap: dict[str, int]) -> str:
    return str(gap["from"]) if gap["from"] == gap["to"] else f"{gap['from']}-{gap['to']}"


async def _to_status(request: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": "/status"})
