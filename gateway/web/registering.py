"""`POST /v1/devices` and what follows it: keys of devices, for whoever flashes boards.

A key is the one secret that is ever answered; it is given to the operator's token alone, which is
taken over https or on this machine only.
"""

import re
from collections.abc import Callable

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.errors import Rejected
from gateway.keys import Keys
from gateway.store import devices
from gateway.store.database import Database
from gateway.web.exchange import BODY
from gateway.web.shapes import DeviceKey, DeviceName, Revoked

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_encode = msgspec.json.Encoder().encode


class Registration(Struct, forbid_unknown_fields=True):
    """Who is to be registered."""

    device: DeviceName
    may_ask: bool | None = None  # None: as it is


_decode = msgspec.json.Decoder(Registration).decode


class Registering:
    def __init__(self, db: Database, keys: Keys, now_ms: Callable[[], int]) -> None:
        self._db = db
        self._keys = keys
        self._now_ms = now_ms

    async def add(self, request: web.Request) -> web.Response:
        """Answer with the device's key; one that is registered keeps the key it has."""
        wanted = _registration(request[BODY].sent)
        generation = await devices.register(self._db, wanted.device, self._now_ms())
        if wanted.may_ask is not None:
            await devices.let_ask(self._db, wanted.device, wanted.may_ask)
        return self._answer(wanted.device, generation)

    async def rotate(self, request: web.Request) -> web.Response:
        """Answer with a new key; the old one is void once the board has used it."""
        device = _device(request)
        generation = await devices.rotate(self._db, device)
        if generation is None:
            raise _nobody()
        return self._answer(device, generation)

    async def revoke(self, request: web.Request) -> web.Response:
        """Make its key and its token void, for good."""
        device = _device(request)
        if not await devices.revoke(self._db, device):
            raise _nobody()
        return _answer(Revoked(device))

    def _answer(self, device: str, generation: int) -> web.Response:
        key = self._keys.device_key(device, generation).hex()
        return _answer(DeviceKey(device, generation, key))


def _registration(body: bytes) -> Registration:
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        raise Rejected(422, f"this is not how a device is registered: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected(400, f"the body is not JSON: {error}") from None


def _device(request: web.Request) -> str:
    device = request.match_info["device"]
    if not _NAME.fullmatch(device):
        raise _nobody()
    return device


def _answer(found: DeviceKey | Revoked) -> web.Response:
    return web.Response(
        body=_encode(found), content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _nobody() -> Rejected:
    return Rejected(404, "no device of that name has a key here")
