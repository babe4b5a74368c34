"""Who asks, and what they may: docs/protocol.md, sections 3 and 7."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple

from aiohttp import web

from gateway.config import Config
from gateway.errors import Rejected
from gateway.keys import OPERATOR_TOKEN
from gateway.web import peer, signing
from gateway.web.body import Body
from gateway.web.keyring import KeyRing

_SIGNED = "fieldpost"
_BEARER = "bearer"


class Need(Enum):
    """What a resource asks of its caller."""

    NOTHING = "nothing"
    DELIVER = "deliver"
    ASK = "ask"
    OPERATE = "operate"


WITH_BODY = {Need.DELIVER, Need.ASK}


class Kind(Enum):
    """Whom a caller was found to be."""

    STRANGER = "stranger"
    DEVICE = "device"
    OPERATOR = "operator"
    OPEN = "open"  # a stranger whom open mode lets in


MAY = {
    Kind.STRANGER: {Need.NOTHING},
    Kind.DEVICE: {Need.NOTHING, Need.DELIVER},
    Kind.OPERATOR: set(Need),
    Kind.OPEN: set(Need),
}


class Signer(NamedTuple):
    """A device whose signature was right: what signs the answer to it."""

    key: bytes
    device: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Caller:
    kind: Kind
    signer: Signer | None = None

    @property
    def device(self) -> str | None:
        return self.signer.device if self.signer else None


_STRANGER = Caller(Kind.STRANGER)
_OPERATOR = Caller(Kind.OPERATOR)
_OPEN = Caller(Kind.OPEN)


class Gate:
    """Finds out who asks, and turns away who may not."""

    def __init__(self, config: Config, operator_token: str, ring: KeyRing) -> None:
        self._config = config
        self._operator_token = operator_token
        self._ring = ring

    @staticmethod
    def is_signed(request: web.Request) -> bool:
        """Return whether it says it is signed: then the body is needed to know who asks."""
        return _scheme(request.headers.get("Authorization", "")) == _SIGNED

    async def signed(self, request: web.Request, body: Body) -> Caller:
        """Return the device that signed this.

        Raises:
            Rejected: 401, the same for a bad form, an unknown device and a wrong signature.
        """
        given = signing.parse(request.headers["Authorization"])
        if given is not None:
            fits = partial(_fits, given, request.method, request.raw_path, body.sha256)
            key = await self._ring.verified(given.device, fits)
            if key is not None:
                return Caller(Kind.DEVICE, Signer(key, given.device, given.nonce))
        raise Rejected(401, "the signature is not one of a device that is known here")

    def unsigned(self, request: web.Request) -> Caller:
        """Return who asks when no device does.

        Raises:
            Rejected: 401 for what is no token of ours, 403 for a token that others could read.
        """
        authorization = request.headers.get("Authorization")
        if authorization is not None:
            return self._bearer(request, authorization)
        return _OPEN if self._lets_in(request) else _STRANGER

    def refuse_unless(self, caller: Caller, need: Need, request: web.Request) -> None:
        """Raise Rejected, 401 or 403 with what to do, unless the caller may."""
        if need in MAY[caller.kind]:
            return
        if caller.kind is Kind.DEVICE:
            raise Rejected(403, "a device may deliver readings and nothing else")
        if self._config.open and peer.is_local(request):
            raise Rejected(
                403, "open mode answers here as http://127.0.0.1 or http://localhost only"
            )
        raise Rejected(
            401,
            f"this needs the token in {OPERATOR_TOKEN}, beside the database, as a bearer token; or"
            " start the gateway with --open to let in everybody on its machine (--open-lan: in the"
            " network). Boards sign their requests",
        )

    def _bearer(self, request: web.Request, authorization: str) -> Caller:
        if not (request.secure or peer.is_local(request)):
            raise Rejected(403, "tokens are taken over https, or from this machine, only")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == _BEARER and signing.equal(token.strip(), self._operator_token):
            return _OPERATOR
        raise Rejected(401, "the Authorization is not one that is known here")

    def _lets_in(self, request: web.Request) -> bool:
        if self._config.open_lan:
            return True
        return self._config.open and peer.is_local(request) and peer.asks_for_local(request)


Fits = Callable[[bytes], bool]


def _fits(given: signing.Credentials, method: str, target: str, sha256: str, key: bytes) -> bool:
    right = signing.request_signature(key, method, target, given.device, given.nonce, sha256)
    return signing.equal(right, given.signature)


def _scheme(authorization: str) -> str:
    return authorization.partition(" ")[0].lower()
