"""Around every request: its id, who asks, failures as problems, the signature, one log line."""

import hashlib
import logging
import secrets
from collections.abc import Mapping
from itertools import count

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.errors import Rejected
from gateway.web import problem, signing
from gateway.web.body import BodyReader
from gateway.web.caller import STRANGER, Caller, Need, Signer
from gateway.web.exchange import BODY, CALLER, CSRF, REQUEST_ID
from gateway.web.forms import Forms
from gateway.web.gate import WITH_BODY, Gate
from gateway.web.login import PAGE, wants_page

log = logging.getLogger(__name__)

PROTOCOL = "Fieldpost-Protocol"
_SIGNATURE = "Fieldpost-Signature"
_REQUEST_ID = "X-Request-ID"
_MOST_ID_CHARACTERS = 64

# What the server did well is not worth a line of everybody's log; what it refused is.
_LEVELS = {4: logging.INFO, 5: logging.WARNING}

_run = secrets.token_hex(4)  # tells apart the ids of two runs
_numbers = count(1)


class Envelope:
    """The middleware. `needs` says of every handler what it asks of its caller."""

    def __init__(
        self, gate: Gate, needs: Mapping[Handler, Need], bodies: BodyReader, forms: Forms
    ) -> None:
        self._gate = gate
        self._needs = needs
        self._bodies = bodies
        self._forms = forms

    @web.middleware
    async def around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        request_id = request_id_of(request)
        request[REQUEST_ID] = request_id
        try:
            await self._admit(request)
            response = await handler(request)
        except Exception as failure:
            response = _to_login(request, failure) or problem.of(failure, request_id)
        stamp(response, request_id)
        caller = request.get(CALLER, STRANGER)
        if caller.signer is not None:
            _sign(response, caller.signer, request.method)
        _note(request, response, caller)
        return response

    async def _admit(self, request: web.Request) -> None:
        """Put who asks into the request, and the body where one is needed."""
        need = self._need(request)
        signed = self._gate.is_signed(request)
        if signed:  # who asks can only be known with the body
            request[BODY] = await self._bodies.read(request)
            request[CALLER] = await self._gate.signed(request, request[BODY])
        elif need is not Need.NOTHING:
            request[CALLER] = await self._gate.unsigned(request)
        caller = request.get(CALLER, STRANGER)
        request[CSRF] = self._forms.token(caller)
        self._gate.refuse_unless(caller, need, request)
        if need is Need.ACT:
            await self._forms.admit(request, caller)
        if need in WITH_BODY and not signed:  # nobody without leave makes us read
            request[BODY] = await self._bodies.read(request)

    def _need(self, request: web.Request) -> Need:
        if request.match_info.http_exception is not None:
            return Need.NOTHING  # 404 and 405 are nobody's secret
        return self._needs[request.match_info.handler]


def _to_login(request: web.Request, failure: Exception) -> web.Response | None:
    """Return what leads a person's browser to the log-in, where that is what it needs."""
    is_page = request.path == PAGE or request.path.startswith(PAGE + "/")
    if is_page and isinstance(failure, Rejected) and failure.status == 401 and wants_page(request):
        return web.Response(status=303, headers={"Location": "/login", "Cache-Control": "no-store"})
    return None


def request_id_of(request: web.BaseRequest) -> str:
    """Return the caller's id of the request if it is a sane one, else a new one."""
    given = request.headers.get(_REQUEST_ID)
    if given and len(given) <= _MOST_ID_CHARACTERS and given.isascii() and given.isprintable():
        return given
    return new_request_id()


def new_request_id() -> str:
    return f"{_run}-{next(_numbers)}"


def stamp(response: web.StreamResponse, request_id: str) -> None:
    """Put in what every answer of the gateway carries."""
    headers = response.headers
    headers[PROTOCOL] = "1"
    headers[_REQUEST_ID] = request_id
    headers["Server"] = "Fieldpost"


def _sign(response: web.StreamResponse, signer: Signer, method: str) -> None:
    # Devices are only ever answered from memory: there is no stream to sign.
    sent = response.body if isinstance(response, web.Response) and method != "HEAD" else b""
    assert sent is None or isinstance(sent, bytes | bytearray)
    response.headers[_SIGNATURE] = signature_of(
        signer, response.status, response.headers.get("Retry-After", ""), sent or b""
    )


def signature_of(signer: Signer, status: int, retry_after: str, body: bytes | bytearray) -> str:
    """Return what an answer to this device must carry."""
    sha256 = hashlib.sha256(body).hexdigest()
    return signing.answer_signature(
        signer.key, signer.device, signer.nonce, status, retry_after, sha256
    )


def _note(request: web.Request, response: web.StreamResponse, caller: Caller) -> None:
    level = _LEVELS.get(response.status // 100, logging.DEBUG)
    if log.isEnabledFor(level):
        extra = {"request_id": request[REQUEST_ID], "caller": caller.device or caller.kind.value}
        log.log(
            level, "%s %s -> %d", request.method, request.path[:200], response.status, extra=extra
        )
