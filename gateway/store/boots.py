"""The books of one boot of one device: how far its numbers got, and what is missing below.

Used inside the transaction that stores the readings. While numbers arrive one after the other
only `highest` moves; the ranges are read when something is out of order.
"""

import sqlite3

from gateway.gaps import Gaps, Range
from gateway.store import queries

_sql = queries.load("boots")


class Boot:
    """One boot's books.

    Args:
        id, highest, pruned_to: of the row in `boot`.
        has_lost: whether the device said of some of its numbers that they will never come.
        is_new: whether the device was never heard in it before this group.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        now_ms: int,
        id: int,
        highest: int,
        pruned_to: int,
        has_lost: int,
        is_new: int,
    ) -> None:
        self._connection = connection
        self._now_ms = now_ms
        self.id = id
        self.is_new = bool(is_new)
        self.highest = self._highest_before = highest
        self._pruned_to = pruned_to
        self._has_lost = bool(has_lost)
        self._gaps: Gaps | None = None
        self._open_before: set[Range] = set()
        self._lost_before: set[Range] = set()

    @classmethod
    def find(
        cls, connection: sqlite3.Connection, now_ms: int, device_id: int, name: str, is_live: bool
    ) -> "Boot":
        """Return the books of a boot, begun if there are none; `is_live`: its device is there."""
        row = connection.execute(_sql.find, (device_id, name)).fetchone()
        if row is None:
            begun = (device_id, name, now_ms if is_live else 0)
            row = connection.execute(_sql.add, begun).fetchone()
        return cls(connection, now_ms, *row)

    def hear(self) -> None:
        """Note that the device itself speaks in this boot."""
        if self.is_new:
            self._connection.execute(_sql.hear, (self._now_ms, self.id))

    def arrive(self, n: int) -> None:
        """Note that number `n` is here."""
        if n == self.highest + 1 and self._gaps is None and not self._has_lost:
            self.highest = n
            return
        gaps = self._load()
        gaps.arrive(n)
        self.highest = gaps.highest

    def explain(self, lost: Range) -> None:
        """Note that the device says these numbers will never come."""
        self._load().explain(lost)

    def was_pruned(self, n: int) -> bool:
        """Return whether number `n` was stored once and retention took it away."""
        if n > self._pruned_to:
            return False
        row = self._connection.execute(_sql.pruned_around, (self.id, n)).fetchone()
        return row is not None and n <= row[0]

    @property
    def has_risen(self) -> bool:
        return self.highest != self._highest_before

    def save_gaps(self) -> None:
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
