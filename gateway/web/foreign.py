"""Turns away what a page of another site makes a browser send to a gateway in open mode.

Open mode asks for no secret, so whatever reaches this machine is let in; a browser reaches it too.
"""

from aiohttp import web

from gateway.errors import Rejected
from gateway.web.exchange import CALLER
from gateway.web.gate import Kind

JSON = "application/json"


def refuse_form(request: web.Request) -> None:
    """Raise Rejected (415) for a body that a browser sends anywhere without asking first.

    JSON is none of those: a browser asks the server (Fetch, 4.8), and nobody here says yes.
    """
    if request[CALLER].kind is Kind.OPEN and request.content_type != JSON:
        raise Rejected(415, f"Content-Type must be {JSON}")


def refuse_origin(request: web.Request) -> None:
    """Raise Rejected (403) if another site's page asks. Browsers say so with every POST."""
    if request[CALLER].kind is Kind.OPEN and _is_foreign(request, None):
        raise Rejected(403, "in open mode a page of another site decides nothing here")


def refuse_site(request: web.Request) -> None:
    """Raise Rejected (403) if a form was sent by the page of another site.

    A page that tells no referrer sends its own forms with `Origin: null` (Fetch, "append a request
    `Origin` header"): that says nothing, and the form's token must say it.
    """
    if _is_foreign(request, "null"):
        raise Rejected(403, "this form was sent by the page of another site")


def _is_foreign(request: web.Request, passes: str | None) -> bool:
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return True
    origin = request.headers.get("Origin")
    if origin is None or origin == passes:
        return False
    return origin.partition("://")[2] != request.headers.get("Host", "")
