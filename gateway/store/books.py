"""The books of the devices of one group of deliveries: read at once, written at once.

Each statement lets go of the interpreter's lock and waits for it again beside a busy event loop,
so a group costs a handful of statements whatever its size, and not a handful for each delivery.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.model import Batch, Delivery, Envelope
from gateway.store import queries
from gateway.store.boots import Boot

_sql = queries.load("books")


class Change(msgspec.Struct, array_like=True):
    """What a group changes of one device; None leaves a column as it is.

    Written as an array: SQLite finds a place in it three times as fast as a name.
    """

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

    def boot(self, name: str, now_ms: int) -> Boot:
        """Return the books of one of its boots, begun if it was never heard of."""
        boot = self.boots.get(name)
        if boot is None:
            boot = self.boots[name] = Boot.find(self._connection, now_ms, self.id, name)
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
    wanted = {(each.batch.envelope.device, each.batch.envelope.boot) for each in deliveries}
    found = _rows(connection, _sql.find, wanted)
    unknown = {device for device, _ in wanted} - {row[0] for row in found}
    if unknown:
        connection.executemany(_sql.add_device, [(device, now_ms) for device in sorted(unknown)])
        found = _rows(connection, _sql.find, wanted)
    books: dict[str, Book] = {}
    for device, id_, present, seq, boot, *columns in found:
        if device not in books:
            books[device] = Book(connection, id_, present, seq)
        if boot is not None:
            books[device].boots[boot] = Boot(connection, now_ms, *columns)
    _read_sensors(connection, deliveries, books)
    return books


def write(connection: sqlite3.Connection, books: dict[str, Book]) -> None:
    """Write what the group changed."""
    changes = [book.change for book in books.values()]
    connection.execute(_sql.update_devices, (_json(changes),))
    boots = [boot for book in books.values() for boot in book.boots.values()]
    risen = [(boot.id, boot.highest) for boot in boots if boot.has_risen]
    if risen:
        connection.execute(_sql.raise_highest, (_json(risen),))
    for boot in boots:
        boot.save_gaps()


def _read_sensors(
    connection: sqlite3.Connection, deliveries: list[Delivery], books: dict[str, Book]
) -> None:
    by_id = {book.id: book for book in books.values()}
    wanted = {
        (books[each.batch.envelope.device].id, item.reading.sensor)
        for each in deliveries
        for item in each.batch.items
    }
    for device_id, name, sensor_id in _rows(connection, _sql.find_sensors, wanted):
        by_id[device_id].sensors[name] = sensor_id


def _rows(
    connection: sqlite3.Connection, sql: str, wanted: Iterable[tuple[Any, ...]]
) -> list[list[Any]]:
    """Return the rows of a statement that gives them as one JSON array."""
    found: str = connection.execute(sql, (_json(list(wanted)),)).fetchone()[0]
    return msgspec.json.decode(found, type=list[list[Any]])


def _json(rows: list[Any]) -> str:
    return msgspec.json.encode(rows).decode()
