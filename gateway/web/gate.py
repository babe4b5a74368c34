"""Who asks, and what they may: docs/protocol.md, sections 3 and 7."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from aiohttp import web

from gateway.config import Config
from gateway.errors import Rejected
from gateway.keys import OPERATOR_TOKEN
from gateway.web import cookie, peer, signing
from gateway.web.body import Body
from gateway.web.caller import OPEN, OPERATOR, STRANGER, Caller, Kind, Need, Signer
from gateway.web.keyring import KeyRing
from gateway.web.refusals import Refusals
from gateway.web.tokens import Tokens
from gateway.web.tries import Tries

_SIGNED = "fieldpost"
_BEARER = "bearer"

WITH_BODY = {Need.DELIVER, Need.ASK, Need.KEEP_KEYS}

__all__ = ["WITH_BODY", "Bearer", "Caller", "Gate", "Kind", "Need", "Signer"]


class Bearer(NamedTuple):
    """The device whose token it is."""

    device: str
    may_ask: bool


class Gate:
    """Finds out who asks, and turns away who may not."""

    def __init__(
        self,
        config: Config,
        operator_token: str,
        ring: KeyRing,
        bearers: Tokens[Bearer],
        sessions: Tokens[bool],
        refusals: Refusals,
        tries: Tries,
    ) -> None:
        self._config = config
        self._operator_token = operator_token
        self._ring = ring
        self._bearers = bearers
        self._sessions = sessions
        self._refusals = refusals
        self._tries = tries

    @staticmethod
    def is_signed(request: web.Request) -> bool:
        """Return whether it says it is signed: then the body is needed to know who asks."""
        return _scheme(request.headers.get("Authorization", "")) == _SIGNED

    async def signed(self, request: web.Request, body: Body) -> Caller:
        """Return the device that signed this.

        Raises:
            Rejected: 401, the same for a bad form, an unknown device and a wrong signature.
        """
        authorization = request.headers["Authorization"]
        return await self.signed_as(authorization, request.method, request.raw_path, body.sha256)

    async def signed_as(self, authorization: str, method: str, target: str, sha256: str) -> Caller:
        """Return the device that signed this, by whichever way it came. Raises as `signed`."""
        given = signing.parse(authorization)
        if given is not None:
            fits = partial(_fits, given, method, target, sha256)
            key = await self._ring.verified(given.device, fits)
            if key is not None:
                signer = Signer(key, given.device, given.nonce)
                may_ask = self._ring.may_ask(given.device)
                return Caller(Kind.DEVICE, given.device, signer, may_ask)
        self._refusals.add(given.device if given else None)
        raise Rejected(401, "the signature is not one of a device that is known here")

    async def on_cable(self, authorization: str | None, sha256: str) -> Caller:
        """Return who delivers over a cable: a device, or whoever has it where open mode is on.

        Raises:
            Rejected: 401 for everybody else.
        """
        if authorization is not None:
            return await self.signed_as(authorization, "POST", "/v1/readings", sha256)
        if self._config.open:  # it takes a hand on this machine to plug in a cable
            return OPEN
        raise Rejected(401, "boards sign what they deliver; this gateway is not in open mode")

    async def unsigned(self, request: web.Request) -> Caller:
        """Return who asks when no device does.

        Raises:
            Rejected: 401 for what is no token of ours, 403 for a token that others could read, 429
                after too many wrong ones.
        """
        authorization = request.headers.get("Authorization")
        if authorization is not None:
            return await self._bearer(request, authorization)
        if self._lets_in(request):
            return OPEN
        session = cookie.secret(request)
        if session is not None and await self._sessions.whose(session):
            return Caller(Kind.OPERATOR, session=session)
        return STRANGER

    def refuse_unless(self, caller: Caller, need: Need, request: web.Request) -> None:
        """Raise Rejected, 401 or 403 with what to do, unless the caller may."""
        if caller.may(need, request.method):
            return
        if caller.kind is Kind.DEVICE:
            raise Rejected(403, "a device may deliver readings; jobs only if it is marked may_ask")
        if caller.kind is Kind.OPERATOR:
            raise Rejected(403, "a browser's log-in reads here, and acts by the page's forms only")
        if caller.kind is Kind.OPEN:
            raise Rejected(403, f"keys need the token in {OPERATOR_TOKEN}, in open mode too")
        if self._config.open_lan:
            raise Rejected(403, f"open mode answers under {peer.KNOWN_NAMES} only")
        if self._config.open and peer.is_local(request):
            raise Rejected(
                403, "open mode answers here as http://127.0.0.1 or http://localhost only"
            )
        raise Rejected(
            401,
            f"this needs the token in {OPERATOR_TOKEN}, beside the database, as a bearer token, or"
            " in a browser the link of `python -m gateway login`; or start the gateway with --open"
            " to let in everybody on its machine (--open-lan: in the network). Boards sign their"
            " requests",
        )

    async def _bearer(self, request: web.Request, authorization: str) -> Caller:
        is_local = peer.is_local(request)
        is_safe = request.secure or is_local
        if not (is_safe or self._config.allow_plain_bearer):
            raise Rejected(403, "tokens are taken over https, or from this machine, only")
        if not is_local:  # a script gone wrong on this machine must not shut its owner out
            self._tries.require(request)
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        # The operator's token goes over no network in plain text, whatever is allowed to others.
        is_operator = signing.equal(token, self._operator_token) and is_safe
        bearer = await self._bearers.whose(token)
        if scheme.lower() == _BEARER:
            if is_operator:
                return OPERATOR
            if bearer is not None:
                return Caller(Kind.DEVICE, bearer.device, may_ask=bearer.may_ask)
        if not is_local:
            self._tries.count(request)
        self._refusals.add(None)
        raise Rejected(401, "the Authorization is not one that is known here")

    def _lets_in(self, request: web.Request) -> bool:
        if self._config.open_lan:
            return peer.asks_for_known(request, self._config.host_names)
        return self._config.open and peer.is_local(request) and peer.asks_for_local(request)


Fits = Callable[[bytes], bool]


def _fits(given: signing.Credentials, method: str, target: str, sha256: str, key: bytes) -> bool:
    right = signing.request_signature(key, method, target, given.device, given.nonce, sha256)
    return signing.equal(right, given.signature)


def _scheme(authorization: str) -> str:
    return authorization.partition(" ")[0].lower()
