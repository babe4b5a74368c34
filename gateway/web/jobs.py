"""`/v1/jobs`: heavy work is asked for, looked at and decided about. None of it is done here."""

import sqlite3
from typing import Any

import msgspec
from aiohttp import web

from gateway.errors import Rejected
from gateway.kinds import Kinds
from gateway.states import FINAL, State, Verb
from gateway.store import job_pages
from gateway.store.database import Database
from gateway.store.jobs import Asked, KeyUsed, NotAllowed
from gateway.web import asked, foreign, idempotency, prefer
from gateway.web.caller import Caller, Kind
from gateway.web.desk import Desk
from gateway.web.disk import Disk
from gateway.web.exchange import BODY, CALLER, REQUEST_ID
from gateway.web.inflate import inflate
from gateway.web.parameters import Parameters
from gateway.web.shapes import Job, JobPage
from gateway.web.watch import Watch

JSON = "application/json"
USUAL_LIMIT = 100
MOST_AT_ONCE = 1000
MOST_WAIT_S = 10
MOST_DIGITS = 18  # of an id that SQLite can have

_AGAIN_S = "1"  # when to look at a job that was just added
_encode = msgspec.json.Encoder().encode


class Asking:
    """`POST /v1/jobs`."""

    def __init__(self, desk: Desk, kinds: Kinds, watch: Watch, disk: Disk) -> None:
        self._desk = desk
        self._kinds = kinds
        self._watch = watch
        self._disk = disk

    async def post(self, request: web.Request) -> web.Response:
        """Add a job and answer after the commit; or when it is over, to who prefers to wait."""
        foreign.refuse_form(request)
        self._disk.require_room()
        job_id = await self.add(self._asked(request))
        row = await self._desk.row(job_id)
        if row is None:
            raise _no_such_job()
        wait_s = prefer.wait_s(request.headers.getall("Prefer", []))
        headers = {"Location": f"/v1/jobs/{job_id}"}
        if wait_s is not None:
            row = await self._watch.until(_is_over, row, wait_s)
            headers["Preference-Applied"] = f"wait={wait_s}"
            if _is_over(row):
                return _answer(Job.of(row), 200, headers)
        return _answer(Job.of(row), 202, headers | {"Retry-After": _AGAIN_S})

    def _asked(self, request: web.Request) -> Asked:
        encoding = request.headers.get("Content-Encoding", "")
        body = inflate(request[BODY].sent, encoding, asked.MAX_BYTES)
        ask = asked.decode(body, self._kinds)
        key = idempotency.key(request.headers.getall("Idempotency-Key", []))
        return Asked(
            ask.kind,
            ask.args_as_json(),
            ask.priority,
            ask.run_at_ms,
            request_id=request[REQUEST_ID],
            caller=idempotency.scope(request[CALLER]),
            idempotency_key=key,
            fingerprint=None if key is None else ask.fingerprint(),
        )

    async def add(self, job: Asked) -> int:
        """Add a job and return its id, the one there is under its idempotency key.

        Raises:
            Rejected: 422, the key was used for another job.
        """
        try:
            job_id, _ = await self._desk.add(job)
        except KeyUsed:
            raise Rejected(
                422, "this Idempotency-Key was used before, for another kind, args, priority or"
                " run_at_ms: take a new key for a new job"
            ) from None  # fmt: skip
        return job_id


class Looking:
    """`GET /v1/jobs` and `GET /v1/jobs/{id}`: what the rows say; nothing is worked out."""

    def __init__(self, db: Database, watch: Watch) -> None:
        self._db = db
        self._watch = watch

    async def one(self, request: web.Request) -> web.Response:
        """Answer at once, or with `wait` when the job has moved or is over."""
        wait_s = Parameters(request.query, frozenset({"wait"})).integer("wait", 0, MOST_WAIT_S)
        row = await _row(self._db, _id(request))
        if not _is_for(request[CALLER], row):
            raise _no_such_job()
        if wait_s:
            before = _position(row)
            row = await self._watch.until(
                lambda now: _is_over(now) or _position(now) != before, row, wait_s
            )
        return _answer(Job.of(row))

    async def page(self, request: web.Request) -> web.Response:
        given = Parameters(request.query, frozenset({"state", "after", "limit"}))
        state = given.one_of("state", tuple(State))
        before = given.integer("after", 1, job_pages.NEWEST) or job_pages.NEWEST
        limit = given.integer("limit", 1, MOST_AT_ONCE) or USUAL_LIMIT
        wanted, caller = State(state) if state else None, request[CALLER]
        if caller.kind is Kind.DEVICE:
            rows = await job_pages.asked_by(
                self._db, idempotency.scope(caller), limit, before, wanted
            )
        else:
            rows = await job_pages.page(self._db, limit, before, wanted)
        next_ = rows[-1]["id"] if len(rows) == limit else None
        return _answer(JobPage([Job.of(row) for row in rows], next_))


class Deciding:
    """`POST /v1/jobs/{id}/retry`, `/discard` and `/cancel`: what only a person decides."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def retry(self, request: web.Request) -> web.Response:
        return await self._answer(request, Verb.RETRY)

    async def discard(self, request: web.Request) -> web.Response:
        return await self._answer(request, Verb.DISCARD)

    async def cancel(self, request: web.Request) -> web.Response:
        return await self._answer(request, Verb.CANCEL)

    async def decide(self, job_id: int, verb: Verb) -> tuple[sqlite3.Row, bool]:
        """Make the move; return the job's row after it, and False if it was asked of its worker.

        Raises:
            Rejected: 404, 409.
        """
        try:
            return await self._desk.decide(job_id, verb)
        except NotAllowed as error:
            if error.state is None:
                raise _no_such_job() from None
            raise Rejected(
                409, f"job {job_id} is {error.state}: {verb} is no move from there"
            ) from None

    async def _answer(self, request: web.Request, verb: Verb) -> web.Response:
        foreign.refuse_origin(request)
        row, is_done = await self.decide(_id(request), verb)
        return _answer(Job.of(row), 200 if is_done else 202)


def _is_over(row: sqlite3.Row) -> bool:
    return row["state"] in FINAL


def _position(row: sqlite3.Row) -> tuple[Any, ...]:
    """Return what differs after every move, also when the state is the same again."""
    return row["state"], row["attempts"], row["crashes"], row["started_at_ms"]


def _is_for(caller: Caller, row: sqlite3.Row) -> bool:
    """Return whether it may see the job: a device sees its own and is not told of others."""
    return caller.kind is not Kind.DEVICE or row["caller"] == idempotency.scope(caller)


def _id(request: web.Request) -> int:
    digits = request.match_info["id"]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS):
        raise _no_such_job()
    return int(digits)


async def _row(db: Database, job_id: int) -> sqlite3.Row:
    row = await job_pages.get(db, job_id)
    if row is None:
        raise _no_such_job()
    return row


def _no_such_job() -> Rejected:
    return Rejected(404, "there is no such job; those that are over are kept for a while only")


def _answer(
    found: Job | JobPage, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status,
        body=_encode(found),
        content_type=JSON,
        headers={"Cache-Control": "no-store"} | (headers or {}),
    )
