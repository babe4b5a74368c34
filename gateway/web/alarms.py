"""`/v1/alarms`: what a person should know is listed, acknowledged, and closed where one may."""

import sqlite3
from collections.abc import Callable
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from gateway.errors import Rejected
from gateway.store import alarms
from gateway.store.database import Database
from gateway.web import foreign
from gateway.web.body import BodyReader
from gateway.web.caller import Caller, Kind
from gateway.web.exchange import CALLER
from gateway.web.parameters import Parameters
from gateway.web.shapes import AlarmPage, FullAlarm

STATES = ("open", "closed", "all")
USUAL_LIMIT = 100
MOST_AT_ONCE = 1000
MOST_NOTE = 1000  # characters
_MOST_DIGITS = 18

_encode = msgspec.json.Encoder().encode


class Acknowledgement(Struct, forbid_unknown_fields=True):
    """What whoever acknowledges it has to say: plain text."""

    note: Annotated[str, Meta(max_length=MOST_NOTE, pattern=r"\A[^\x00-\x1f\x7f]*\Z")] = ""


_decode = msgspec.json.Decoder(Acknowledgement).decode


class Alarms:
    def __init__(self, db: Database, bodies: BodyReader, now_ms: Callable[[], int]) -> None:
        self._db = db
        self._bodies = bodies
        self._now_ms = now_ms

    async def page(self, request: web.Request) -> web.Response:
        """Answer with the open ones, the newest first; or those that are over, or all."""
        given = Parameters(request.query, frozenset({"state", "after", "limit"}))
        state = given.one_of("state", STATES) or "open"
        before = given.integer("after", 1, alarms.NEWEST) or alarms.NEWEST
        limit = given.integer("limit", 1, MOST_AT_ONCE) or USUAL_LIMIT
        rows = await alarms.page(self._db, state, limit, before)
        next_ = rows[-1]["id"] if len(rows) == limit else None
        return _answer(AlarmPage([FullAlarm.of(row) for row in rows], next_))

    async def acknowledge(self, request: web.Request) -> web.Response:
        """Note who knows of it, and what they say; it stays open."""
        foreign.refuse_form(request)
        alarm_id = _id(request)
        note = _note((await self._bodies.read(request)).sent)
        now_ms, by = self._now_ms(), named(request[CALLER])
        done = await self._db.write(lambda c: alarms.acknowledge(c, alarm_id, now_ms, by, note))
        return await self._after(alarm_id, done)

    async def close(self, request: web.Request) -> web.Response:
        """Close it, if it is of a kind that does not close by itself."""
        foreign.refuse_origin(request)
        alarm_id, now_ms, by = _id(request), self._now_ms(), named(request[CALLER])
        try:
            done = await self._db.write(lambda c: alarms.close_alarm(c, alarm_id, now_ms, by))
        except alarms.NotClosable:
            raise Rejected(
                409, f"alarm {alarm_id} closes by itself, when what it says is no longer true"
            ) from None
        return await self._after(alarm_id, done)

    async def _after(self, alarm_id: int, done: bool) -> web.Response:
        row: sqlite3.Row | None = await alarms.get(self._db, alarm_id)
        if row is None:
            raise _no_such_alarm()
        if not done:
            raise Rejected(409, f"alarm {alarm_id} is closed")
        return _answer(FullAlarm.of(row))


def named(caller: Caller) -> str:
    """Return who it is, for those who read it later."""
    return "operator" if caller.kind is Kind.OPERATOR else "somebody in open mode"


def _note(body: bytes) -> str:
    try:
        return _decode(body).note
    except msgspec.ValidationError as error:
        raise Rejected(422, f"this is not how an alarm is acknowledged: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected(400, f"the body is not JSON: {error}") from None


def _id(request: web.Request) -> int:
    digits = request.match_info["id"]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise _no_such_alarm()
    return int(digits)


def _no_such_alarm() -> Rejected:
    return Rejected(404, "there is no such alarm; those that are over are kept for a while only")


def _answer(found: FullAlarm | AlarmPage) -> web.Response:
    return web.Response(
        body=_encode(found), content_type="application/json", headers={"Cache-Control": "no-store"}
    )
