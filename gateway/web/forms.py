"""Lets in the forms of the page and no others: see gateway/web/session.py for how they are made."""

from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from gateway.errors import Rejected
from gateway.web import foreign, signing
from gateway.web.body import BodyReader
from gateway.web.caller import Caller, Kind
from gateway.web.exchange import BODY, FORM
from gateway.web.session import brings, derived_token

_USUAL = "application/x-www-form-urlencoded"
_MOST_FIELDS = 64


class Forms:
    """Args: open_secret: of which the token of open mode is made; known to nobody else."""

    def __init__(self, bodies: BodyReader, open_secret: bytes) -> None:
        self._bodies = bodies
        self._open_token = derived_token(open_secret)

    def token(self, caller: Caller) -> str:
        """Return what a form must bring that this caller sends; empty: nothing, or no form."""
        if caller.session is not None:
            return derived_token(caller.session)
        return self._open_token if caller.kind is Kind.OPEN else ""

    async def admit(self, request: web.Request, caller: Caller) -> None:
        """Read a usual form into the request, and see that it is one of ours.

        Raises:
            Rejected: 403 for a form of another site, or one without the right token; 400.
        """
        if request.content_type == _USUAL:
            request[BODY] = await self._bodies.read(request)
            request[FORM] = _fields(request[BODY].sent)
        right = self.token(caller)
        if not right:  # it brought the operator's token, which no browser does by itself
            return
        foreign.refuse_site(request)
        if not signing.equal(brings(request, request.get(FORM, MultiDict())), right):
            raise Rejected(403, "this form is too old, or none of ours: load its page again")


def _fields(sent: bytes) -> MultiDict[str]:
    try:
        pairs = parse_qsl(sent.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Rejected(400, "the body is no form") from None
    return MultiDict(pairs)
