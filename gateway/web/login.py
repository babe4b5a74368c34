"""`/login` and `/logout`: how an operator's browser gets its cookie, and how it loses it.

The link only shows a button: what looks at links by itself, such as the preview of a chat or a
mail, does not press it, so the link is still good for the person.
"""

from collections.abc import Callable
from urllib.parse import parse_qs

import aiohttp_jinja2
from aiohttp import web

from gateway.errors import Rejected
from gateway.store import sessions
from gateway.store.database import Database
from gateway.web import cookie
from gateway.web.accept import preferred
from gateway.web.body import BodyReader
from gateway.web.exchange import CALLER
from gateway.web.tokens import Tokens
from gateway.web.tries import Tries

FORM = "application/x-www-form-urlencoded"
PAGE = "/status"

_MOST_CHARACTERS = 128
_VOID = "this link is void: it was used, or it is older than 10 minutes"

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address of this page is the secret
    "Cache-Control": "no-store",
}


class Login:
    """Args: open_sessions: those at hand, which must forget one that is logged out."""

    def __init__(
        self,
        db: Database,
        bodies: BodyReader,
        tries: Tries,
        open_sessions: Tokens[bool],
        now_ms: Callable[[], int],
    ) -> None:
        self._db = db
        self._bodies = bodies
        self._tries = tries
        self._open = open_sessions
        self._now_ms = now_ms

    async def show(self, request: web.Request) -> web.Response:
        """Answer with the button. Nothing is looked up: a guess learns nothing here."""
        return _page(request, link=request.query.get("t", "")[:_MOST_CHARACTERS])

    async def log_in(self, request: web.Request) -> web.Response:
        """Use up the link and give the browser its cookie."""
        if request.content_type != FORM:
            raise Rejected(415, f"Content-Type must be {FORM}")
        self._tries.require(request)
        sent = (await self._bodies.read(request)).sent.decode("utf-8", "replace")
        link = parse_qs(sent, max_num_fields=8).get("t", [""])[0][:_MOST_CHARACTERS]
        session = await sessions.log_in(self._db, link, self._now_ms())
        if session is None:
            self._tries.count(request)
            return _refusal(request)
        response = web.Response(status=303, headers={"Location": PAGE, **_HEADERS})
        cookie.give(response, request, session)
        return response

    async def log_out(self, request: web.Request) -> web.Response:
        """End the browser's session, here and in every other process."""
        session = request[CALLER].session
        if session is not None:
            await sessions.log_out(self._db, session)
            self._open.forget(session)
        response = web.Response(status=303, headers={"Location": "/login", **_HEADERS})
        cookie.take(response, request)
        return response


def wants_page(request: web.Request) -> bool:
    """Return whether a person looks at this, with a browser."""
    accept = request.headers.get("Accept", "")
    return preferred(accept, ("application/json", "text/html")) == "text/html"


def _refusal(request: web.Request) -> web.Response:
    if not wants_page(request):
        raise Rejected(401, f"{_VOID}; `python -m gateway login` prints another")
    response = _page(request, trouble=_VOID)
    response.set_status(401)
    return response


def _page(request: web.Request, *, link: str = "", trouble: str = "") -> web.Response:
    context = {"link": link, "trouble": trouble}
    response = aiohttp_jinja2.render_template("login.html", request, context)
    response.headers.update(_HEADERS)
    return response
