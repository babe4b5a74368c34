"""`/v1/status` and the page `/status`: what is true now, for programs and for people."""

from collections.abc import Callable
from typing import Any

import aiohttp_jinja2
import msgspec
from aiohttp import web

from gateway import __version__
from gateway.config import Config
from gateway.store import alarms, job_pages, pages
from gateway.store.database import Database
from gateway.web import devices
from gateway.web.accept import preferred
from gateway.web.health import Health

JSON = "application/json"
HTML = "text/html"

_MOST_DEVICES = 100
_MOST_READINGS = 20
_MOST_JOBS = 20

# Nothing but our own style sheet: what a board or a caller sent can not become a script.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Status:
    def __init__(
        self, db: Database, config: Config, health: Health, now_ms: Callable[[], int]
    ) -> None:
        self._db = db
        self._config = config
        self._health = health
        self._now_ms = now_ms

    async def get(self, request: web.Request) -> web.Response:
        """Answer as JSON."""
        status = await status_of(self._db, self._health, self._now_ms())
        return web.Response(
            body=msgspec.json.encode(status),
            content_type=JSON,
            headers={"Cache-Control": "no-store"},
        )

    async def page(self, request: web.Request) -> web.Response:
        """Answer as a page, or as JSON to who likes that better."""
        if preferred(request.headers.get("Accept", ""), (HTML, JSON)) == JSON:
            return await self.get(request)
        now_ms = self._now_ms()
        context = {
            "now_ms": now_ms,
            "status": await status_of(self._db, self._health, now_ms),
            "devices": await devices.described(self._db, now_ms, "", _MOST_DEVICES),
            "readings": await pages.newest_readings(self._db, _MOST_READINGS),
            "jobs": await job_pages.page(self._db, _MOST_JOBS),
            "open": self._config.open,
            "open_lan": self._config.open_lan,
        }
        response = aiohttp_jinja2.render_template("status.html", request, context)
        response.headers.update(HEADERS)
        return response


async def status_of(db: Database, health: Health, now_ms: int) -> dict[str, Any]:
    """Return the status in the form that docs/protocol.md gives it."""
    trouble = await health.trouble()
    counts = await pages.counts(db, now_ms)
    open_alarms = [dict(row) for row in await alarms.list_open(db)]
    jobs = await job_pages.counts(db, now_ms)
    troubles = [f"no reading can be stored: {trouble.detail}"] if trouble else []
    troubles += _troubles(counts, len(open_alarms), jobs["failed"] or 0)
    return {
        "ok": not troubles,
        "headline": ", ".join(troubles) if troubles else _all_well(counts),
        "alarms": open_alarms,
        "devices": {name: counts[name] for name in ("total", "silent")},
        "readings": {
            name: counts[name] for name in ("stored", "duplicates", "quarantined", "missing")
        },
        "jobs": jobs,
        "version": __version__,
    }


def _troubles(counts: dict[str, int], open_alarms: int, failed_jobs: int) -> list[str]:
    silent, missing = counts["silent"], counts["missing"]
    said = [
        (open_alarms, _many(open_alarms, "alarm is open", "alarms are open")),
        (silent, f"{silent} of {_many(counts['total'], 'device')} {_be(silent)} silent"),
        (missing, _many(missing, "reading is missing", "readings are missing")),
        (failed_jobs, _many(failed_jobs, "job failed", "jobs failed")),
    ]
    return [sentence for count, sentence in said if count]


def _all_well(counts: dict[str, int]) -> str:
    if not counts["total"]:
        return "no device has reported yet"
    if not counts["seen"]:
        return f"{_many(counts['total'], 'device')} registered, none has reported yet"
    heard = counts["seen"]
    waiting = counts["total"] - heard
    rest = f", {waiting} never reported" if waiting else ""
    return f"{_many(heard, 'device is', 'devices are')} reporting, nothing is missing{rest}"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"
