"""Storing a batch: readings, duplicates, quarantine, device and gap books, in one transaction.

`Ledger.store` runs in the writer's thread, inside the group's transaction.
"""

import hashlib
import sqlite3
from itertools import chain

import msgspec

from gateway.dating import date
from gateway.decode import parse_id
from gateway.model import Batch, Envelope, Item, Reading, Refusal, Rejection, Verdicts
from gateway.store import queries
from gateway.store.boots import Boot

_sql = queries.load("readings")
_CONFLICT = "id was used before for another reading"
_MAX_CACHED_SENSORS = 50_000


class Ledger:
    """Stores batches. Remembers the keys of sensors, which never change once committed."""

    def __init__(self) -> None:
        self._sensors: dict[tuple[int, str], int] = {}

    def forget(self) -> None:
        """Drop what was remembered: a rollback may have taken it away."""
        self._sensors.clear()

    def store(self, connection: sqlite3.Connection, batch: Batch, received_ms: int) -> Verdicts:
        """Store what is new of `batch` and say what became of each reading."""
        return _Delivery(self, connection, batch, received_ms).store()

    def sensor_id(self, connection: sqlite3.Connection, device_id: int, name: str) -> int:
        key = (device_id, name)
        found = self._sensors.get(key)
        if found is None:
            row = connection.execute(_sql.find_sensor, key).fetchone()
            row = row or connection.execute(_sql.add_sensor, key).fetchone()
            if len(self._sensors) >= _MAX_CACHED_SENSORS:
                self._sensors.clear()
            found = self._sensors[key] = row[0]
        return found


class _Delivery:
    """One batch on its way into the database."""

    def __init__(
        self, ledger: Ledger, connection: sqlite3.Connection, batch: Batch, received_ms: int
    ) -> None:
        self._ledger = ledger
        self._connection = connection
        self._batch = batch
        self._received_ms = received_ms
        name = batch.envelope.device
        row = connection.execute(_sql.find_device, (name,)).fetchone()
        if row is None:
            connection.execute(_sql.add_device, (name, received_ms))
            row = connection.execute(_sql.find_device, (name,)).fetchone()
        self._device_id, self._present_boot, self._seq = row
        self._boots: dict[str, Boot] = {}

    def store(self) -> Verdicts:
        items, refusals = self._batch.items, list(self._batch.refusals)
        rows = [row for item in items if (row := self._row(item)) is not None]
        stored = duplicates = 0
        if rows:
            insert = queries.for_rows(_sql.add_reading, len(rows))
            stored = self._connection.execute(insert, list(chain.from_iterable(rows))).rowcount
        if stored < len(items):
            conflicts = self._conflicts()
            refusals += conflicts
            duplicates = len(items) - stored - len(conflicts)
        quarantined = self._quarantine(refusals)
        self._explain_lost()
        self._hear(stored)
        for boot in self._boots.values():
            boot.save()
        counts = (stored, duplicates, quarantined, self._batch.ignored, self._device_id)
        if any(counts[:-1]):
            self._connection.execute(_sql.count, counts)
        rejected = [Rejection(r.place, r.id, r.reason) for r in sorted(refusals)]
        return Verdicts(stored, duplicates, rejected)

    def _row(self, item: Item) -> tuple[object, ...] | None:
        """Return the row to insert; None for a reading that retention took away before."""
        reading, boot_id = item.reading, None
        if item.boot is not None and item.n is not None:
            boot = self._boot(item.boot)
            if boot.was_pruned(item.n):
                return None
            boot.arrive(item.n)
            boot_id = boot.id
        sensor_id = self._ledger.sensor_id(self._connection, self._device_id, reading.sensor)
        dated = date(reading, self._batch.envelope, self._received_ms)
        return (
            reading.id, self._device_id, sensor_id,
            reading.value, reading.text, reading.unit, reading.error,
            boot_id, item.n, *dated, self._received_ms,
        )  # fmt: skip

    def _conflicts(self) -> list[Refusal]:
        """Return the readings whose id is stored with another content.

        Those just inserted are found too, and have the content they were inserted with: so two
        of one id inside a batch are judged in order.
        """
        ids = msgspec.json.encode([item.reading.id for item in self._batch.items]).decode()
        stored = {row[0]: row[1:] for row in self._connection.execute(_sql.find_contents, (ids,))}
        return [
            Refusal(item.place, item.reading.id, _CONFLICT, bytes(item.body).decode())
            for item in self._batch.items
            if stored.get(item.reading.id, content := self._content(item.reading)) != content
        ]

    def _content(self, reading: Reading) -> tuple[object, ...]:
        sensor_id = self._ledger.sensor_id(self._connection, self._device_id, reading.sensor)
        return sensor_id, reading.value, reading.text, reading.unit, reading.error

    def _quarantine(self, refusals: list[Refusal]) -> int:
        device = self._batch.envelope.device
        added = 0
        for refusal in refusals:
            named = parse_id(refusal.id) if refusal.id else None
            if named is not None and named[0] == device:
                self._boot(named[1]).arrive(named[2])
            digest = hashlib.sha256("\0".join((device, refusal.reason, refusal.body)).encode())
            added += self._connection.execute(
                _sql.quarantine,
                (
                    digest.digest()[:16], refusal.id, device,
                    refusal.reason, refusal.body, self._received_ms,
                ),
            ).rowcount  # fmt: skip
        return added

    def _explain_lost(self) -> None:
        for lost in self._batch.lost:
            if lost.first <= lost.last:
                self._boot(lost.boot).explain((lost.first, lost.last))

    def _hear(self, stored: int) -> None:
        """Note that the device is there, unless this delivery may be a replay."""
        envelope = self._batch.envelope
        if not self._is_news(envelope, stored):
            return
        health = self._batch.health
        said = None if health is None else msgspec.json.encode(health).decode()
        heard = (self._received_ms, envelope.boot, envelope.seq, said, self._device_id)
        self._connection.execute(_sql.hear, heard)
        if health is not None and health.crash is not None:
            noted = (health.crash, self._received_ms, self._device_id)
            self._connection.execute(_sql.note_crash, noted)

    def _is_news(self, envelope: Envelope, stored: int) -> bool:
        if envelope.boot is None:
            return stored > 0
        if self._boot(envelope.boot).is_new or self._present_boot is None:
            return True
        if envelope.boot != self._present_boot:
            return False
        if envelope.seq is None or self._seq is None:
            return stored > 0
        return envelope.seq > int(self._seq)

    def _boot(self, name: str) -> Boot:
        boot = self._boots.get(name)
        if boot is None:
            boot = Boot(self._connection, self._device_id, name, self._received_ms)
            self._boots[name] = boot
        return boot
