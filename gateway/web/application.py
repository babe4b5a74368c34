"""Puts the web side together: the parts, the resources, and what each asks of its caller."""

import asyncio
from collections.abc import Callable
from functools import partial
from importlib.resources import files

import aiohttp_jinja2
import jinja2
from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.config import Config
from gateway.ingest import Ingest
from gateway.keys import Keys
from gateway.kinds import Kinds
from gateway.store import devices as device_store
from gateway.store.database import Database
from gateway.store.jobs import Queue
from gateway.web import instants, openapi
from gateway.web.devices import Devices
from gateway.web.disk import Disk
from gateway.web.envelope import Envelope
from gateway.web.gate import Gate, Need
from gateway.web.health import Health
from gateway.web.imports import Imports
from gateway.web.jobs import Asking, Deciding, Looking
from gateway.web.keyring import KeyRing
from gateway.web.readings import Delivery, Readings
from gateway.web.reports import Reports
from gateway.web.status import Status
from gateway.web.watch import Watch

_PAGE = files(__package__).joinpath("page")

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
) -> web.Application:
    """Return the application; `gateway.web.Runner` serves it.

    Args:
        now_ms: the wall clock, Unix epoch, UTC.
        kinds: of jobs that may be asked for.
        wake: called when a job was added; tells the workers of this process, if it has any.
        stopping: set when the gateway stops; then whoever waits for a job is answered.
        disk: another than the one that the database stands on.
    """
    disk = disk or Disk(config.folder, config.min_free_bytes)
    watch = Watch(db, stopping)
    imports = Imports(db, queue, config, disk, wake, now_ms)
    resources = [
        *_resources(db, ingest, config, now_ms, disk),
        *_of_jobs(db, queue, kinds, watch, disk, wake, now_ms),
        ("POST", "/v1/imports", imports.post, Need.OPERATE),
        ("GET", "/v1/imports/{id}", imports.get, Need.OPERATE),
        ("GET", "/v1/openapi.json", openapi.resource(kinds), Need.OPERATE),
    ]
    ring = KeyRing(keys, partial(device_store.generation, db))
    gate = Gate(config, keys.operator_token, ring)
    needs = {handler: need for _method, _path, handler, need in resources}
    app = web.Application(middlewares=[Envelope(gate, needs, config).around])
    for method, path, handler, _need in resources:
        add = app.router.add_get if method == "GET" else partial(app.router.add_route, method)
        add(path, handler)
    app.on_cleanup.append(lambda _: watch.close())
    _set_up_pages(app)
    return app


def _resources(
    db: Database, ingest: Ingest, config: Config, now_ms: Callable[[], int], disk: Disk
) -> list[Resource]:
    delivery, readings = Delivery(ingest, disk, config, now_ms), Readings(db)
    devices, health = Devices(db, now_ms), Health(db, disk)
    status = Status(db, config, health, now_ms)
    return [
        ("POST", "/v1/readings", delivery.post, Need.DELIVER),
        ("GET", "/v1/readings", readings.get, Need.OPERATE),
        ("GET", "/v1/devices", devices.get, Need.OPERATE),
        ("GET", "/v1/reports/{name}", Reports(config.folder).get, Need.OPERATE),
        ("GET", "/v1/status", status.get, Need.OPERATE),
        ("GET", "/status", status.page, Need.OPERATE),
        ("GET", "/", _to_status, Need.NOTHING),
        ("GET", "/page/fieldpost.css", _style_sheet(), Need.NOTHING),
        ("GET", "/healthz", health.alive, Need.NOTHING),
        ("GET", "/readyz", health.ready, Need.NOTHING),
    ]


def _of_jobs(
    db: Database,
    queue: Queue,
    kinds: Kinds,
    watch: Watch,
    disk: Disk,
    wake: Callable[[], None],
    now_ms: Callable[[], int],
) -> list[Resource]:
    asking = Asking(db, queue, kinds, watch, disk, wake, now_ms)
    looking, deciding = Looking(db, watch), Deciding(db, queue, wake, now_ms)
    return [
        ("POST", "/v1/jobs", asking.post, Need.ASK),
        ("GET", "/v1/jobs", looking.page, Need.OPERATE),
        ("GET", "/v1/jobs/{id}", looking.one, Need.OPERATE),
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


def _style_sheet() -> Handler:
    body = _PAGE.joinpath("fieldpost.css").read_bytes()

    async def get(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="text/css", headers={
            "Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff"
        })  # fmt: skip

    return get
