"""How much one device may deliver, and how many devices nobody registered may appear.

Both are looked at before a batch goes in. A device that is told 429 or 403 keeps everything and
comes again, so a limit costs nobody a reading.
"""

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Raw, Struct

from gateway.config import Config
from gateway.errors import Rejected, TooOften
from gateway.store import quotas as store
from gateway.store.database import Database
from gateway.web.bucket import Buckets
from gateway.web.caller import Caller


class Label(Struct):
    """What a batch says of itself, as far as it matters here."""

    device: str
    readings: list[Raw]
    boot: Any = None  # a malformed one is ignored, as it is where the batch is decoded
    seq: Any = None

    def attempt(self) -> tuple[str | None, int | None]:
        """Return its boot and seq, None for what is malformed."""
        boot = self.boot if isinstance(self.boot, str) else None
        seq = self.seq if isinstance(self.seq, int) and not isinstance(self.seq, bool) else None
        return boot, seq


_decode = msgspec.json.Decoder(Label).decode


class Quotas:
    """Args: monotonic: seconds."""

    def __init__(
        self, db: Database, config: Config, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._monotonic = monotonic
        self._max_devices = config.max_devices
        self._requests = _buckets(config.requests_per_minute)
        self._readings = _buckets(config.readings_per_minute)
        self._present: dict[str, tuple[str | None, int | None]] = {}
        self._known: set[str] = set()
        self._coming: set[str] = set()

    @asynccontextmanager
    async def admitted(self, body: bytes, caller: Caller) -> AsyncIterator[None]:
        """Hold what the batch takes while it goes in.

        Args:
            body: the JSON, inflated. What is no batch passes: whoever decodes it says so.

        Raises:
            TooOften: the device has used up its minute.
            Rejected: 403, it would be one device too many.
        """
        try:
            label = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield
            return
        if caller.device is not None:
            if label.device == caller.device:  # else it is refused anyway
                await self._take(label)
            yield
            self._note(label)
            return
        await self._make_room(label.device)
        self._coming.add(label.device)
        try:
            yield
            self._known.add(label.device)
        finally:
            self._coming.discard(label.device)

    async def _take(self, label: Label) -> None:
        """Take from the device's buckets; a replay takes nothing, else it could empty them."""
        if (self._requests or self._readings) and not await self._is_replay(label):
            wanted = [(self._requests, 1), (self._readings, len(label.readings))]
            now_s, device = self._monotonic(), label.device
            waits_s = [buckets.wait_s(device, n, now_s) for buckets, n in wanted if buckets]
            if max(waits_s):
                raise TooOften(f"{device} delivers more than it may", math.ceil(max(waits_s)))
            for buckets, tokens in wanted:
                if buckets:
                    buckets.take(device, tokens, now_s)

    async def _is_replay(self, label: Label) -> bool:
        """Return whether the store would hear nothing new in this; see `books.Book.hear`."""
        boot, seq = label.attempt()
        if boot is None:
            return False
        if label.device not in self._present:
            self._present[label.device] = await store.present(self._db, label.device)
        present, newest = self._present[label.device]
        if boot != present:
            return present is not None and await store.has_boot(self._db, label.device, boot)
        return seq is not None and newest is not None and seq <= newest

    def _note(self, label: Label) -> None:
        """Keep up with what the store just heard."""
        boot, seq = label.attempt()
        present, newest = self._present.get(label.device, (None, None))
        if boot is None or boot != present or seq is None or newest is None:
            self._present.pop(label.device, None)  # looked up again when it is needed
        else:
            self._present[label.device] = present, max(newest, seq)

    async def _make_room(self, device: str) -> None:
        if device in self._known:
            return
        is_known, count = await store.devices(self._db, device)
        if is_known:
            self._known.add(device)
        elif count + len(self._coming - {device}) >= self._max_devices:
            raise Rejected(
                403,
                f"{self._max_devices} devices are known here, no more come in unasked: register"
                " this one with `devices add`, or raise max_devices",
            )


def _buckets(a_minute: int) -> Buckets | None:
    return Buckets(a_minute, a_minute) if a_minute else None
