"""The books of the devices of one group of deliveries: read at once, written at once.

Each statement lets go of the interpreter's lock and waits for it again beside a busy event loop,
so all that a group needs is read by one, whatever its size.
"""

import sqlite3
from itertools import chain
from typing import Any

import msgspec

from gateway.model import Batch, Delivery, Envelope
from gateway.store import queries
from gateway.store.boots import Boot

_sql = queries.load("books")
_ROWS = msgspec.json.Decoder(list[list[Any]])


class Change(msgspec.Struct):
    """What a group changes of one device; None leaves a column as it is."""

    id: int
    stored: int = 0
    duplicates: int = 0
    quarantined: int = 0
    ignored: int = 0
    last_seen_at_ms: int | None = None
    boot: str | None = None
    seq: int | None = None
    health: str | None = None
    crash: str | None = None
    crash_at_ms: int | None = None


class Book:
    """What is known of one device, and what this group changes of it."""

    def __init__(
        self, connection: sqlite3.Connection, id: int, boot: str | None, seq: int | None
    ) -> None:
        self.id = id
        self.boots: dict[str, Boot] = {}
        self.sensors: dict[str, int] = {}
        self.change = Change(id)
        self._connection = connection
        self._present_boot = boot
        self._seq = seq

    def boot(self, name: str, now_ms: int, is_live: bool = True) -> Boot:
        """Return the books of one of its boots, begun if there are none."""
        boot = self.boots.get(name)
        if boot is None:
            boot = self.boots[name] = Boot.find(self._connection, now_ms, self.id, name, is_live)
        return boot

    def sensor(self, name: str) -> int:
        """Return the key of one of its sensors, added if it has none."""
        found = self.sensors.get(name)
        if found is None:
            row = self._connection.execute(_sql.add_sensor, (self.id, name)).fetchone()
            found = self.sensors[name] = row[0]
        return found

    def hear(self, batch: Batch, stored: int, duplicates: int, now_ms: int) -> None:
        """Note that the device is there and how it is, unless this delivery may be a replay."""
        envelope, health, change = batch.envelope, batch.health, self.change
        is_news = self._is_news(envelope, stored, now_ms)
        if is_news or envelope.boot is None:  # a replay counts nothing
            change.duplicates += duplicates
            change.ignored += batch.ignored
        if not is_news:
            return
        change.last_seen_at_ms = now_ms
        if envelope.boot is not None:
            self.boot(envelope.boot, now_ms).hear()
            change.boot = self._present_boot = envelope.boot
            change.seq = self._seq = envelope.seq or 0
        if health is not None:
            change.health = msgspec.json.encode(health).decode()
            if health.crash is not None:
                change.crash, change.crash_at_ms = health.crash, now_ms

    def _is_news(self, envelope: Envelope, stored: int, now_ms: int) -> bool:
        """Return whether this is a new attempt; without a boot only what is stored tells."""
        if envelope.boot is None:
            return stored > 0
        boot = self.boot(envelope.boot, now_ms)
        if envelope.boot != self._present_boot:
            return boot.is_new or self._present_boot is None
        if envelope.seq is None or self._seq is None:
            return stored > 0
        return envelope.seq > self._seq


def read(connection: sqlite3.Connection, deliveries: list[Delivery]) -> dict[str, Book]:
    """Return the books of every device that is named, by its name. Unknown ones are begun."""
    now_ms = deliveries[0].received_ms
    wanted = _Wanted(deliveries)
    found, sensors = wanted.find(connection)
    unknown = wanted.devices - {row[0] for row in found}
    if unknown:
        connection.executemany(_sql.add_device, [(device, now_ms) for device in sorted(unknown)])
        found, sensors = wanted.find(connection)
    books: dict[str, Book] = {}
    for device, id_, present, seq, boot, *columns in found:
        if device not in books:
            books[device] = Book(connection, id_, present, seq)
        if boot is not None:
            books[device].boots[boot] = Boot(connection, now_ms, *columns)
    for device, sensor, id_ in sensors:
        books[device].sensors[sensor] = id_
    return books


def write(connection: sqlite3.Connection, books: dict[str, Book]) -> None:
    """Write what the group changed."""
    changes = [msgspec.structs.astuple(book.change) for book in books.values()]
    _write_rows(connection, _sql.update_devices, changes)
    boots = [boot for book in books.values() for boot in book.boots.values()]
    risen = [(boot.id, boot.highest) for boot in boots if boot.has_risen]
    _write_rows(connection, _sql.raise_highest, risen)
    for boot in boots:
        boot.save_gaps()


def _write_rows(connection: sqlite3.Connection, sql: str, rows: list[tuple[Any, ...]]) -> None:
    """Run an UPDATE from rows of values.

    Rows of NULL, which meet nothing, fill it up: so few sizes are kept prepared.
    """
    if not rows:
        return
    size = 1 << (len(rows) - 1).bit_length()
    filling = [None] * (len(rows[0]) * (size - len(rows)))
    values = [*chain.from_iterable(rows), *filling]
    connection.execute(queries.for_rows(sql, size), values)


class _Wanted:
    """What a group names: devices, boots, sensors."""

    def __init__(self, deliveries: list[Delivery]) -> None:
        boots, sensors = set(), set()
        for batch, *_ in deliveries:
            device = batch.envelope.device
            boots.add((device, batch.envelope.boot))
            sensors |= {(device, item.reading.sensor) for item in batch.items}
        self.devices = {device for device, _ in boots}
        self._params = _json(list(boots)), _json(list(sensors))

    def find(self, connection: sqlite3.Connection) -> tuple[list[Any], list[Any]]:
        boots, sensors = connection.execute(_sql.find, self._params).fetchone()
        return _ROWS.decode(boots), _ROWS.decode(sensors)


def _json(rows: list[Any]) -> str:
    return msgspec.json.encode(rows).decode()
