"""The pages under `/status`, and each of their parts alone for a page that is open."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiohttp import web

from gateway.errors import Rejected
from gateway.kinds import Kinds
from gateway.states import State
from gateway.store import job_pages
from gateway.store.database import Database
from gateway.web.accept import preferred
from gateway.web.parameters import Parameters
from gateway.web.status import jobs
from gateway.web.status.parts import Parts
from gateway.web.status.reader import Reader
from gateway.web.status.series import SPANS

JSON = "application/json"
HTML = "text/html"

_MOST_PAGES = 400
_MOST_JOBS = 50
_JOB = re.compile(r"[0-9]{1,18}")


class Views:
    """Answers with pages and parts."""

    def __init__(
        self, db: Database, kinds: Kinds, parts: Parts, reader: Reader, now_ms: Callable[[], int]
    ) -> None:
        self._db = db
        self._kinds = kinds
        self._parts = parts
        self._reader = reader
        self._now_ms = now_ms

    async def json(self, request: web.Request) -> web.Response:
        """Answer with the status as JSON."""
        found = await self._parts.headline()
        body = msgspec.json.encode(found["status"])
        return web.Response(
            body=body, content_type=JSON, headers={"Cache-Control": "no-store", "Vary": "Accept"}
        )

    async def front(self, request: web.Request) -> web.Response:
        """Answer as a page, or as JSON to who likes that better."""
        if preferred(request.headers.get("Accept", ""), (HTML, JSON)) == JSON:
            return await self.json(request)
        page = _page(request)
        context = (
            await self._parts.headline()
            | await self._parts.alarms()
            | await self._parts.devices(page)
            | await self._parts.jobs()
            | await self._parts.gateway()
        )
        return self._reader.answer(request, "status.html", context)

    async def part(self, request: web.Request) -> web.Response:
        """Answer with what a part has inside; 404 for what is no part, or not any more.

        Many look at the same, and hear of a change together: it is made once for all of them.
        """
        name = request.match_info["part"]
        key = (name, request.query_string, self._reader.likeness(request, "job" in name))
        text = await self._parts.shared(key, lambda: self._made(name, request))
        return self._reader.response(text)

    async def _made(self, name: str, request: web.Request) -> str:
        template, context = await self._part(name, request)
        if context is None:
            raise Rejected(404, f"there is no part {name[:80]!r} of the page")
        return self._reader.text(request, f"parts/{template}.html", context)

    async def _part(self, name: str, request: web.Request) -> tuple[str, dict[str, Any] | None]:
        match name.partition(":"):
            case ("headline", "", ""):
                return "headline", await self._parts.headline()
            case ("alarms", "", ""):
                return "alarms", await self._parts.alarms()
            case ("devices", "", ""):
                return "devices", await self._parts.devices(_page(request))
            case ("jobs", "", ""):
                return "jobs", await self._parts.jobs()
            case ("gateway", "", ""):
                return "gateway", await self._parts.gateway()
            case ("job", ":", id_) if _JOB.fullmatch(id_):
                return "job", await self._parts.job(int(id_))
            case ("device", ":", device):
                return "device", await self._parts.device(device, _span(request))
        return "", None

    async def device(self, request: web.Request) -> web.Response:
        """Answer with the page of a device: charts, readings, quarantine."""
        name = request.match_info["id"]
        context = await self._parts.device(name, _span(request))
        if context is None:
            raise Rejected(404, "there is no such device")
        return self._reader.answer(request, "device.html", context)

    async def job(self, request: web.Request) -> web.Response:
        """Answer with the page of a job: its whole life."""
        id_ = request.match_info["id"]
        context = await self._parts.job(int(id_)) if _JOB.fullmatch(id_) else None
        if context is None:
            raise Rejected(404, "there is no such job; those that are over are kept for a while")
        return self._reader.answer(request, "job.html", context)

    async def jobs(self, request: web.Request) -> web.Response:
        """Answer with all jobs, or those of a state, the newest first, page by page."""
        given = Parameters(request.query, frozenset({"state", "before"}))
        state = given.one_of("state", tuple(State))
        before = given.integer("before", 1, job_pages.NEWEST) or job_pages.NEWEST
        rows = await job_pages.listed(self._db, _MOST_JOBS, before, State(state) if state else None)
        context = {
            "jobs": [jobs.told(row, self._now_ms()) for row in rows],
            "state": state,
            "states": list(State),
            "next": rows[-1]["id"] if len(rows) == _MOST_JOBS else None,
        }
        return self._reader.answer(request, "jobs.html", context)

    async def ask(self, request: web.Request) -> web.Response:
        """Answer with the forms that ask for work."""
        context = {"kinds": sorted(self._kinds), "yesterday": yesterday(self._now_ms())}
        return self._reader.answer(request, "ask.html", context)


def yesterday(now_ms: int) -> str:
    """Return the day before this one in UTC, as YYYY-MM-DD."""
    return str((datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=1)).date())


def _page(request: web.Request) -> int:
    return Parameters(request.query, frozenset({"page"})).integer("page", 1, _MOST_PAGES) or 1


def _span(request: web.Request) -> str:
    given = Parameters(request.query, frozenset({"span", "n"}))
    return given.one_of("span", tuple(SPANS)) or "day"
