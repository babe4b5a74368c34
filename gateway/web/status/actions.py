"""What a person does on the page: each is a form, done at once and answered with 303 to see it."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web
from multidict import MultiDict

from gateway.errors import Rejected, Unavailable
from gateway.kinds import Kinds
from gateway.states import Verb
from gateway.store.jobs import Asked
from gateway.web import session
from gateway.web.asked import Ask, refuse_unfit
from gateway.web.exchange import CALLER, REQUEST_ID
from gateway.web.imports import Imports
from gateway.web.jobs import Asking, Deciding
from gateway.web.status.alarms import AlarmView
from gateway.web.status.parts import Parts
from gateway.web.status.reader import Reader

_CALLER = "page"
_ID = re.compile(r"[0-9]{1,18}")
_BACK = re.compile(r"/status(/[A-Za-z0-9_.:/-]*)?(\?[a-z]+=[A-Za-z0-9]+)?")
_MOST_NAME = 255
_MOST_NOTE = 1000
_NOT_ARGS = {"kind", "args", "back", session.FIELD}

Do = Callable[[web.Request], Awaitable[str]]


class Actions:
    """The handlers of forms."""

    def __init__(
        self,
        kinds: Kinds,
        asking: Asking,
        deciding: Deciding,
        imports: Imports,
        alarm: AlarmView,
        parts: Parts,
        reader: Reader,
    ) -> None:
        self._kinds = kinds
        self._asking = asking
        self._deciding = deciding
        self._imports = imports
        self._alarm = alarm
        self._parts = parts
        self._reader = reader

    async def retry(self, request: web.Request) -> web.Response:
        return await self._done(request, partial(self._decide, verb=Verb.RETRY))

    async def discard(self, request: web.Request) -> web.Response:
        return await self._done(request, partial(self._decide, verb=Verb.DISCARD))

    async def cancel(self, request: web.Request) -> web.Response:
        return await self._done(request, partial(self._decide, verb=Verb.CANCEL))

    async def ask(self, request: web.Request) -> web.Response:
        """Add the job that the form asks for."""
        return await self._done(request, self._ask)

    async def bring_in(self, request: web.Request) -> web.Response:
        """Take a file of readings, as it comes, and add the job that reads it."""
        return await self._done(request, self._bring_in)

    async def acknowledge(self, request: web.Request) -> web.Response:
        """Note that a person knows of an alarm."""
        return await self._done(request, self._note)

    async def close(self, request: web.Request) -> web.Response:
        """Close an alarm that a person may close."""
        return await self._done(request, self._close)

    async def _done(self, request: web.Request, do: Do) -> web.Response:
        try:
            address = await do(request)
        except (Rejected, Unavailable) as refusal:
            return self._refused(request, refusal)
        self._parts.forget()
        return web.Response(status=303, headers={"Location": address, "Cache-Control": "no-store"})

    def _refused(self, request: web.Request, refusal: Rejected | Unavailable) -> web.Response:
        status = refusal.status if isinstance(refusal, Rejected) else 503
        context = {
            "detail": refusal.detail, "code": status, "request_id": request[REQUEST_ID],
            "back": _back(session.form(request), "/status"),
        }  # fmt: skip
        response = self._reader.answer(request, "refused.html", context, status)
        if isinstance(refusal, Unavailable):
            response.headers["Retry-After"] = str(refusal.retry_after_s)
        return response

    async def _decide(self, request: web.Request, verb: Verb) -> str:
        id_ = _id_of(request)
        await self._deciding.decide(id_, verb)
        return _back(session.form(request), f"/status/jobs/{id_}")

    async def _ask(self, request: web.Request) -> str:
        ask = asked_by(session.form(request))
        refuse_unfit(ask, self._kinds)
        job_id = await self._asking.add(
            Asked(ask.kind, ask.args_as_json(), request_id=request[REQUEST_ID], caller=_CALLER)
        )
        return f"/status/jobs/{job_id}"

    async def _bring_in(self, request: web.Request) -> str:
        part = await _file(request)
        name = part.filename and part.filename.encode(errors="replace").decode()[:_MOST_NAME]
        job_id = await self._imports.bring_in(part.read_chunk, request[REQUEST_ID], name)
        return f"/status/jobs/{job_id}"

    async def _note(self, request: web.Request) -> str:
        note = session.form(request).get("note", "")
        if not await self._alarm.acknowledge(_id_of(request), note[:_MOST_NOTE], request[CALLER]):
            raise _no_such_alarm()
        return "/status"

    async def _close(self, request: web.Request) -> str:
        if not await self._alarm.close(_id_of(request), request[CALLER]):
            raise _no_such_alarm()
        return "/status"


def asked_by(form: MultiDict[str]) -> Ask:
    """Return what a form asks for: `args` as JSON, or the fields that a kind's own form has.

    Raises:
        Rejected: 422, the args are no JSON object.
    """
    kind, args = form.get("kind", ""), form.get("args")
    if args is not None:
        try:
            return Ask(kind, msgspec.json.decode(args.encode(), type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise Rejected(422, 'args must be a JSON object, such as {"days": 7}') from None
    fields = {name: value.strip() for name, value in form.items() if name not in _NOT_ARGS}
    return Ask(kind, {name: value for name, value in fields.items() if value})


async def _file(request: web.Request) -> BodyPartReader:
    """Return the part of the form that is the file; what comes before it is passed over."""
    if request.content_type != "multipart/form-data":
        raise Rejected(415, "send the form as multipart/form-data")
    try:
        reader = await request.multipart()
        while (part := await reader.next()) is not None:
            if isinstance(part, BodyPartReader) and part.name == "file":
                return part
    except (ValueError, AssertionError) as error:
        raise Rejected(400, "the form is not complete") from error
    raise Rejected(422, "choose a file first")


def _no_such_alarm() -> Rejected:
    return Rejected(404, "there is no such alarm, or it is over")


def _id_of(request: web.Request) -> int:
    given = request.match_info["id"]
    if not _ID.fullmatch(given):
        raise Rejected(404, "there is nothing of that number")
    return int(given)


def _back(form: MultiDict[str], otherwise: str) -> str:
    """Return the page of ours that the form wants to lead back to."""
    given = form.get("back", "")
    return given if _BACK.fullmatch(given) else otherwise
