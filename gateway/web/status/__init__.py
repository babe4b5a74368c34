"""The operator's page: what is true, as it happens, and what a person can do about it."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp.typedefs import Handler

from gateway.config import Config
from gateway.events import Bus
from gateway.kinds import Kinds
from gateway.store.database import Database
from gateway.web.caller import Need
from gateway.web.health import Health
from gateway.web.imports import Imports
from gateway.web.jobs import Asking, Deciding
from gateway.web.readings import Readings
from gateway.web.status.actions import Actions
from gateway.web.status.alarms import AlarmView
from gateway.web.status.assets import asset
from gateway.web.status.charts import Charts
from gateway.web.status.parts import Parts, Snapshot
from gateway.web.status.reader import Reader
from gateway.web.status.recent import Recent
from gateway.web.status.views import Views

Resource = tuple[str, str, Handler, Need]


@dataclass(frozen=True)
class Given:
    """What the page stands on.

    Attributes:
        snapshot: returns the figures of this process, by name; see `parts.FIGURES`.
    """

    db: Database
    config: Config
    health: Health
    kinds: Kinds
    asking: Asking
    deciding: Deciding
    imports: Imports
    readings: Readings
    bus: Bus
    snapshot: Snapshot
    now_ms: Callable[[], int]


def resources(given: Given) -> list[Resource]:
    """Return the resources of the page, each with what it asks of its caller."""
    recent = Recent(given.now_ms)
    given.bus.subscribe(recent.hear)
    parts = Parts(
        given.db, given.config, given.health, given.kinds, recent, given.snapshot, given.now_ms
    )
    reader = Reader(given.config, given.now_ms)
    views = Views(given.db, given.kinds, parts, reader, given.now_ms)
    alarm = AlarmView(given.db, reader, given.now_ms)
    actions = Actions(
        given.kinds, given.asking, given.deciding, given.imports, alarm, parts, reader
    )
    charts = Charts(given.db, given.now_ms)
    return [
        ("GET", "/v1/status", views.json, Need.OPERATE),
        ("GET", "/status", views.front, Need.OPERATE),
        ("GET", "/status/parts/{part}", views.part, Need.OPERATE),
        ("GET", "/status/devices/{id}", views.device, Need.OPERATE),
        ("GET", "/status/devices/{id}/readings.csv", given.readings.of_device, Need.OPERATE),
        ("GET", "/status/jobs", views.jobs, Need.OPERATE),
        ("GET", "/status/jobs/{id}", views.job, Need.OPERATE),
        ("GET", "/status/alarms/{id}", alarm.get, Need.OPERATE),
        ("GET", "/status/ask", views.ask, Need.OPERATE),
        ("GET", "/page/fieldpost.css", asset("fieldpost.css"), Need.NOTHING),
        ("GET", "/page/fieldpost.js", asset("fieldpost.js"), Need.NOTHING),
        ("GET", "/page/icon.svg", asset("icon.svg"), Need.NOTHING),
        ("GET", "/charts/{sensor}/{span}.svg", charts.get, Need.OPERATE),
        ("POST", "/status/jobs", actions.ask, Need.ACT),
        ("POST", "/status/jobs/{id}/retry", actions.retry, Need.ACT),
        ("POST", "/status/jobs/{id}/discard", actions.discard, Need.ACT),
        ("POST", "/status/jobs/{id}/cancel", actions.cancel, Need.ACT),
        ("POST", "/status/imports", actions.bring_in, Need.ACT),
        ("POST", "/status/alarms/{id}/acknowledge", actions.acknowledge, Need.ACT),
        ("POST", "/status/alarms/{id}/close", actions.close, Need.ACT),
    ]
