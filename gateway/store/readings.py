"""Storing deliveries: readings, duplicates, quarantine, device and gap books, in one transaction.

`store` runs in the writer's thread, inside the group's transaction, once for all the deliveries
that share it.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from gateway.dating import date
from gateway.decode import parse_id
from gateway.model import Delivery, Item, Reading, Refusal, Rejection, Verdicts
from gateway.store import books, queries, retention
from gateway.store.books import Book

_sql = queries.load("readings")
CONFLICT = "id was used before for another reading"
# Rows in one INSERT. What is left of a group goes in one of its own size: so few and small
# statements are kept prepared.
_INSERT_SIZES = (512, 64)

Row = tuple[object, ...]


def store(connection: sqlite3.Connection, deliveries: list[Delivery]) -> list[Verdicts]:
    """Store what is new and say of each delivery what became of its readings."""
    return _Group(connection, deliveries).store()


class _Group:
    """The deliveries that share one transaction, judged in the order they came."""

    def __init__(self, connection: sqlite3.Connection, deliveries: list[Delivery]) -> None:
        self._connection = connection
        self._deliveries = deliveries
        self._books = books.read(connection, deliveries)
        self._pruned = self._pruned_ids()

    def store(self) -> list[Verdicts]:
        rows = [self._row(each, item) for each in self._deliveries for item in each.batch.items]
        stored = self._insert(row for row in rows if row is not None)
        if stored == len(rows):
            conflicts: list[list[Refusal]] = [[] for _ in self._deliveries]
            counts = [len(each.batch.items) for each in self._deliveries]
        else:
            counts, conflicts = self._compare(stored)
        verdicts = [
            self._conclude(*each) for each in zip(self._deliveries, counts, conflicts, strict=True)
        ]
        books.write(self._connection, self._books)
        return verdicts

    def _row(self, delivery: Delivery, item: Item) -> Row | None:
        """Return the row to insert; None for a reading that retention took away before."""
        batch, received_ms, is_live = delivery
        reading, boot_id = item.reading, None
        book = self._books[batch.envelope.device]
        if reading.id in self._pruned:
            return None
        if item.boot is not None and item.n is not None:
            boot = book.boot(item.boot, received_ms, is_live)
            if boot.was_pruned(item.n):
                return None
            boot.arrive(item.n)
            boot_id = boot.id
        return (
            reading.id, book.id, *self._content(book, reading),
            boot_id, item.n, *date(reading, batch.envelope, received_ms), received_ms,
        )  # fmt: skip

    def _pruned_ids(self) -> frozenset[str]:
        """Return which of the ids outside the grammar retention took away before."""
        items = [item for each in self._deliveries for item in each.batch.items]
        outside = [item.reading.id for item in items if item.boot is None]
        return retention.ids_among(self._connection, outside) if outside else frozenset()

    def _content(self, book: Book, reading: Reading) -> Row:
        sensor_id = book.sensor(reading.sensor)
        return sensor_id, reading.value, reading.text, reading.unit, reading.error

    def _insert(self, rows: Iterable[Row]) -> int:
        """Insert what is new, in order, and return how many rows that were."""
        left = list(rows)
        stored = 0
        while left:
            size = next((size for size in _INSERT_SIZES if size <= len(left)), len(left))
            insert = queries.for_rows(_sql.add_reading, size)
            values = list(chain.from_iterable(left[:size]))
            stored += self._connection.execute(insert, values).rowcount
            left = left[size:]
        return stored

    def _compare(self, stored: int) -> tuple[list[int], list[list[Refusal]]]:
        """Return for each delivery how many readings of it are new, and its conflicts.

        The keys of the rows just inserted are the highest. The first reading with the id of such
        a row is the one it was made of; any other with that id is judged against it.
        """
        ids = [item.reading.id for each in self._deliveries for item in each.batch.items]
        known = {row[0]: row[1:] for row in self._execute(_sql.find_contents, _json(ids))}
        first_new = self._execute(_sql.newest)[0][0] - stored + 1
        unclaimed = {id_ for id_, row in known.items() if row[0] >= first_new}
        counts: list[int] = []
        conflicts: list[list[Refusal]] = []
        for delivery in self._deliveries:
            book = self._books[delivery.batch.envelope.device]
            waiting = len(unclaimed)
            conflicts.append([])
            for item in delivery.batch.items:
                id_ = item.reading.id
                if id_ in unclaimed:
                    unclaimed.remove(id_)
                elif id_ in known and known[id_][1:] != self._content(book, item.reading):
                    body = bytes(item.body).decode()
                    conflicts[-1].append(Refusal(item.place, id_, CONFLICT, body))
            counts.append(waiting - len(unclaimed))
        return counts, conflicts

    def _conclude(self, delivery: Delivery, stored: int, conflicts: list[Refusal]) -> Verdicts:
        """Keep the rest of the books of one delivery, and say what became of it."""
        batch, received_ms, is_live = delivery
        book = self._books[batch.envelope.device]
        duplicates = len(batch.items) - stored - len(conflicts)
        refusals = sorted([*batch.refusals, *conflicts])
        quarantined = sum(self._quarantine(delivery, refusal) for refusal in refusals)
        for lost in batch.lost:
            book.boot(lost.boot, received_ms, is_live).explain((lost.first, lost.last))
        book.change.stored += stored
        book.change.quarantined += quarantined
        if is_live:
            book.hear(batch, stored, duplicates, received_ms)
        return Verdicts(stored, duplicates, [Rejection(r.place, r.id, r.reason) for r in refusals])

    def _quarantine(self, delivery: Delivery, refusal: Refusal) -> int:
        """Keep what can't be stored, once however often it is sent; its number has arrived."""
        batch, received_ms, is_live = delivery
        device = batch.envelope.device
        named = parse_id(refusal.id) if refusal.id else None
        if named is not None and named[0] == device:
            self._books[device].boot(named[1], received_ms, is_live).arrive(named[2])
        _, id_, reason, body = refusal
        digest = hashlib.sha256("\0".join((device, reason, body)).encode()).digest()[:16]
        row = (digest, id_, device, reason, body, received_ms)
        return self._connection.execute(_sql.quarantine, row).rowcount

    def _execute(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, params).fetchall()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
