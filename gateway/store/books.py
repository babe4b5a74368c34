"""The books of the devices of one group of deliveries: read at once, written at once.

Each statement lets go of the interpreter's lock and waits for it again beside a busy event loop,
so a group costs a handful of statements whatever its size, and not a handful for each delivery.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.model import Batch, Envelope
from gateway.store import queries
from gateway.store.boots import Boot

_sql = queries.load("books")


class Book:
    """What is known of one device, and what this group changes of it."""

    def __init__(self, connection: sqlite3.Connection, id: int, boot: str | None, seq: int | None):
        self.id = id
        self.boots: dict[str, Boot] = {}
        self._connection = connection
        self._present_boot = boot
        self._seq = seq
        self._counts = [0, 0, 0, 0]
        self._heard: tuple[object, ...] = (None, None, None, None)

    def boot(self, name: str, now_ms: int) -> Boot:
        """Return the books of one of its boots, begun if it was never heard of."""
        boot = self.boots.get(name)
        if boot is None:
            boot = self.boots[name] = Boot.find(self._connection, now_ms, self.id, name)
        return boot

    def count(self, *counts: int) -> None:
        """Add to what was stored, duplicates, quarantined, ignored."""
        self._counts = [a + b for a, b in zip(self._counts, counts, strict=True)]

    def hear(self, batch: Batch, stored: int, now_ms: int) -> None:
        """Note that the device is there and how it is, unless this delivery may be a replay."""
        envelope, health = batch.envelope, batch.health
        if not self._is_news(envelope, stored, now_ms):
            return
        said = self._heard[3] if health is None else msgspec.json.encode(health).decode()
        if envelope.boot is not None:
            self._present_boot, self._seq = envelope.boot, envelope.seq or 0
        self._heard = (now_ms, self._present_boot, self._seq, said)
        if health is not None and health.crash is not None:
            self._connection.execute(_sql.note_crash, (health.crash, now_ms, self.id))

    def changes(self) -> tuple[object, ...]:
        return (self.id, *self._counts, *self._heard)

    def _is_news(self, envelope: Envelope, stored: int, now_ms: int) -> bool:
        if envelope.boot is None:
            return stored > 0
        if self.boot(envelope.boot, now_ms).is_new or self._present_boot is None:
            return True
        if envelope.boot != self._present_boot:
            return False
        if envelope.seq is None or self._seq is None:
            return stored > 0
        return envelope.seq > self._seq


def read(
    connection: sqlite3.Connection, envelopes: Iterable[Envelope], now_ms: int
) -> dict[str, Book]:
    """Return the books of every device that is named, by its name. Unknown ones are begun."""
    wanted = {(envelope.device, envelope.boot) for envelope in envelopes}
    found = _found(connection, wanted)
    unknown = {device for device, _ in wanted} - {row[0] for row in found}
    if unknown:
        connection.executemany(_sql.add_device, [(device, now_ms) for device in sorted(unknown)])
        found = _found(connection, wanted)
    books: dict[str, Book] = {}
    for device, id_, present, seq, boot, boot_id, highest, pruned_to in found:
        if device not in books:
            books[device] = Book(connection, id_, present, seq)
        if boot is not None:
            books[device].boots[boot] = Boot(connection, now_ms, boot_id, highest, pruned_to)
    return books


def write(connection: sqlite3.Connection, books: dict[str, Book]) -> None:
    """Write what the group changed."""
    changes = [book.changes() for book in books.values()]
    connection.execute(_sql.update_devices, (_json(changes),))
    boots = [boot for book in books.values() for boot in book.boots.values()]
    risen = [(boot.id, boot.highest) for boot in boots if boot.has_risen]
    if risen:
        connection.execute(_sql.raise_highest, (_json(risen),))
    for boot in boots:
        boot.save_gaps()


def _found(connection: sqlite3.Connection, wanted: set[tuple[str, str | None]]) -> list[list[Any]]:
    rows: str = connection.execute(_sql.find, (_json(list(wanted)),)).fetchone()[0]
    return msgspec.json.decode(rows, type=list[list[Any]])


def _json(rows: list[Any]) -> str:
    return msgspec.json.encode(rows).decode()
