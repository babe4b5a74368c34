"""The books of one boot of one device: how far its numbers got, and what is missing below.

Used inside the transaction that stores the readings. While numbers arrive one after the other
only `highest` moves; the ranges are read when something is out of order.
"""

import sqlite3

from gateway.gaps import Gaps, Range
from gateway.store import queries

_sql = queries.load("boots")


class Boot:
    """One boot's books, read at construction and written by `save`. `is_new`: never heard of."""

    def __init__(
        self, connection: sqlite3.Connection, device_id: int, name: str, now_ms: int
    ) -> None:
        self._connection = connection
        self._now_ms = now_ms
        row = connection.execute(_sql.find, (device_id, name)).fetchone()
        self.is_new = row is None
        if row is None:
            row = connection.execute(_sql.add, (device_id, name, now_ms)).fetchone()
        self.id, self._highest_before, self._pruned_to = row
        self.highest: int = self._highest_before
        self._gaps: Gaps | None = None
        self._open_before: set[Range] = set()
        self._lost_before: set[Range] = set()

    def arrive(self, n: int) -> None:
        """Note that number `n` is here."""
        if n == self.highest + 1 and self._gaps is None:
            self.highest = n
            return
        gaps = self._load()
        gaps.arrive(n)
        self.highest = gaps.highest

    def explain(self, lost: Range) -> None:
        """Note that the device says these numbers will never come."""
        self._load().explain(lost)

    def was_pruned(self, n: int) -> bool:
        """Return whether retention took number `n` away, if it has no row: it was stored once."""
        return n <= self._pruned_to and not self._load().missing(n)

    def save(self) -> None:
        if self.highest != self._highest_before:
            self._connection.execute(_sql.raise_highest, (self.highest, self.id))
        if self._gaps is not None:
            self._replace(_sql.remove_gap, _sql.add_gap, self._open_before, self._gaps.open)
            self._replace(_sql.remove_lost, _sql.add_lost, self._lost_before, self._gaps.lost)

    def _load(self) -> Gaps:
        if self._gaps is None:
            self._open_before = set(self._connection.execute(_sql.open_gaps, (self.id,)))
            self._lost_before = set(self._connection.execute(_sql.lost, (self.id,)))
            self._gaps = Gaps(self.highest, self._open_before, self._lost_before)
        return self._gaps

    def _replace(self, remove: str, add: str, before: set[Range], after: set[Range]) -> None:
        execute = self._connection.executemany
        execute(remove, [(self.id, first) for first, _ in before - after])
        execute(add, [(self.id, *range_, self._now_ms) for range_ in sorted(after - before)])
