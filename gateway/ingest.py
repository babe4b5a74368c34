"""The one door for readings: decode, judge, store, answer."""

import sqlite3
import time
from collections.abc import Callable

from gateway.decode import decode
from gateway.errors import Rejected
from gateway.events import Bus, ReadingsStored
from gateway.model import Delivery, Verdicts
from gateway.sensor_cap import SensorCap
from gateway.store.database import Database
from gateway.store.readings import CONFLICT, store


class Ingest:
    """Takes deliveries and answers after the commit. Its `bus` is told what became of each."""

    def __init__(
        self, database: Database, bus: Bus | None = None, cap: SensorCap | None = None
    ) -> None:
        self._database = database
        self._bus = bus or Bus()
        self._cap = cap

    async def deliver(self, body: bytes, *, device: str | None, received_ms: int) -> Verdicts:
        """Store what is new in the body of a `POST /v1/readings` and say what became of each.

        Args:
            body: the JSON, inflated.
            device: the authenticated device; None where anybody may speak for anyone.
            received_ms: Unix epoch, UTC.

        Raises:
            Rejected: 400, 413, 422 as `decode`; 403 if the body speaks for another device.
            Unavailable: it was not stored; the same may be sent again.
        """
        began = time.perf_counter()
        batch = decode(body)
        if device is not None and batch.envelope.device != device:
            raise Rejected(403, f"{device} may not speak for {batch.envelope.device}")
        if self._cap is not None:
            await self._cap.judge(batch)
        verdicts = await self._database.write_together(store, Delivery(batch, received_ms))
        if self._bus.is_watched:
            took_s = time.perf_counter() - began
            self._bus.publish(_told(batch.envelope.device, verdicts, took_s))
        return verdicts

    async def bring_in(
        self,
        bodies: list[bytes],
        *,
        received_ms: int,
        note: Callable[[sqlite3.Connection, list[Verdicts]], None],
    ) -> None:
        """Store batches that no device sends now, such as those of a file, in one transaction.

        Nothing changes of what is known of the devices' presence and health.

        Args:
            note: writes down in that transaction what became of them; may be called again.

        Raises:
            Rejected, Unavailable: as `deliver`.
        """
        deliveries = [Delivery(decode(body), received_ms, is_live=False) for body in bodies]

        def work(connection: sqlite3.Connection) -> None:
            note(connection, store(connection, deliveries) if deliveries else [])

        await self._database.write(work)


def _told(device: str, verdicts: Verdicts, took_s: float) -> ReadingsStored:
    rejected = verdicts.rejected
    conflicting = sum(one.reason == CONFLICT for one in rejected) if rejected else 0
    return ReadingsStored(
        device, verdicts.stored, verdicts.duplicates, len(rejected), conflicting, took_s
    )
