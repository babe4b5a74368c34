"""The alarm for keys that were refused: written behind the caller's back, with bounded subjects."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable

from gateway.alarm_texts import Kind
from gateway.errors import Unavailable
from gateway.store import alarms, devices
from gateway.store.database import Database

log = logging.getLogger(__name__)

ANYBODY = "unknown"

_AGAIN_AFTER_S = 60.0
_MOST_SUBJECTS = 256


class KeyAlarm:
    """Opens the alarm for the device that was named, or for `unknown` if there is none.

    Nobody waits for it, so the time of the answer tells nothing; names from outside that no device
    has share one alarm, so nobody can fill the list of them; and at most one is written at a time.
    """

    def __init__(
        self,
        db: Database,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._told: dict[str, float] = {}
        self._writing: asyncio.Task[None] | None = None

    def tell(self, device: str | None) -> None:
        """Open the alarm soon, unless it was just told of, or another is being written."""
        name, now_s = device or ANYBODY, self._monotonic()
        told_s = self._told.get(name)
        if told_s is not None and now_s < told_s + _AGAIN_AFTER_S:
            return
        if self._writing is not None and not self._writing.done():
            return
        if len(self._told) >= _MOST_SUBJECTS:
            self._told.clear()
        self._told[name] = now_s
        self._writing = asyncio.create_task(self._write(name))

    async def close(self) -> None:
        """Wait for what is being written."""
        if self._writing is not None:
            await self._writing

    async def _write(self, name: str) -> None:
        try:
            await self._db.write(lambda c: self._open(c, name))
        except (Unavailable, sqlite3.Error) as error:
            log.warning("the alarm for a refused key can not be written: %s", error)

    def _open(self, connection: sqlite3.Connection, name: str) -> None:
        if devices.is_known(connection, name):
            detail = "something signs as this device with another key than it has: the board needs"
            detail += " its key anew (`devices rotate`, `make provision`), or it is somebody else"
            alarms.happen(connection, Kind.KEY_REFUSED, name, detail, self._now_ms())
            return
        detail = "a key or token that is none of ours was refused; the log tells what name it used"
        alarms.happen(connection, Kind.KEY_REFUSED, ANYBODY, detail, self._now_ms())
