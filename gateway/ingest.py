"""The one door for readings: decode, judge, store, answer."""

import sqlite3
from collections.abc import Callable

from gateway.decode import decode
from gateway.errors import Rejected
from gateway.model import Delivery, Verdicts
from gateway.store.database import Database
from gateway.store.readings import store


class Ingest:
    """Takes deliveries and answers after the commit."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        batch = decode(body)
        if device is not None and batch.envelope.device != device:
            raise Rejected(403, f"{device} may not speak for {batch.envelope.device}")
        return await self._database.write_together(store, Delivery(batch, received_ms))

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
