"""Taking away what was kept long enough, a bounded piece in each transaction.

Readings go in the order in which they came, never before the aggregates have counted them, and
what is needed to know them again stays: a reading that retention took away is a duplicate when it
is sent once more.
"""

import sqlite3
from typing import NamedTuple

import msgspec

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("retention")

SCAN_ROWS = 5000  # that one read looks at
PIECE_ROWS = 500  # a few ms, for which those who deliver have to wait
# A time of receipt before this says only that the clock was not set yet.
SANE_MS = 1_577_836_800_000  # 2020-01-01


class Old(NamedTuple):
    """What one look found. `upto`: all up to this arrival are old, None: none of them is.

    Attributes:
        seen: the last arrival that it looked at, None: there are no more.
        met_young: whether it met one that is not old yet.
    """

    upto: int | None
    seen: int | None
    met_young: bool


class Size(NamedTuple):
    """Bytes of the database file that are in use, and that are free inside it."""

    used_bytes: int
    free_bytes: int


async def first_arrival(database: Database) -> int:
    """Return the oldest arrival there is; 1 if there is none."""
    row = await database.one(_sql.first_arrival)
    assert row is not None
    first: int = row["id"]
    return first


async def old_readings(database: Database, after: int, before_ms: int, now_ms: int) -> Old:
    """Look which of the readings that came next behind `after` came before `before_ms`."""
    told = {"after": after, "before_ms": before_ms, "now_ms": now_ms}
    row = await database.one(_sql.old_readings, {**told, "sane_ms": SANE_MS, "scan": SCAN_ROWS})
    assert row is not None
    return Old(row["upto"], row["seen"], bool(row["met_young"]))


def prune_readings(connection: sqlite3.Connection, upto: int, rows: int = PIECE_ROWS) -> int:
    """Take away a piece of the readings up to this arrival; return how many that were."""
    (end,) = connection.execute(_sql.piece_end, {"upto": upto, "rows": rows}).fetchone()
    if end is None:
        return 0
    islands = connection.execute(_sql.islands, {"end": end}).fetchall()
    _remember(connection, msgspec.json.encode(islands).decode())
    connection.execute(_sql.remember_ids, {"end": end})
    return connection.execute(_sql.delete_readings, {"end": end}).rowcount


def ids_among(connection: sqlite3.Connection, reading_ids: list[str]) -> frozenset[str]:
    """Return which of these ids, outside the grammar, were stored once and taken away."""
    asked = msgspec.json.encode(reading_ids).decode()
    return frozenset(row[0] for row in connection.execute(_sql.ids_among, (asked,)))


def prune_quarantine(
    connection: sqlite3.Connection, before_ms: int, now_ms: int, rows: int = PIECE_ROWS
) -> int:
    """Take away a piece of the quarantine that came before `before_ms`; return how many rows."""
    told = {"before_ms": before_ms, "now_ms": now_ms, "sane_ms": SANE_MS, "rows": rows}
    (upto,) = connection.execute(_sql.old_quarantine, told).fetchone()
    if upto is None:
        return 0
    connection.execute(_sql.uncount_quarantine, {"upto": upto})
    return connection.execute(_sql.delete_quarantine, {"upto": upto}).rowcount


def prune_aggregates(
    connection: sqlite3.Connection, span_ms: int, before_ms: int, rows: int = PIECE_ROWS
) -> int:
    """Take away a piece of the hours, or days, that began before `before_ms`."""
    told = {"span_ms": span_ms, "before_ms": before_ms, "rows": rows}
    return connection.execute(_sql.delete_aggregates, told).rowcount


async def size(database: Database) -> Size:
    pages = [
        (await database.all(f"PRAGMA {name}"))[0][0]
        for name in ("page_count", "freelist_count", "page_size")
    ]
    return Size((pages[0] - pages[1]) * pages[2], pages[1] * pages[2])


async def jobs_gone(database: Database, ids: list[int]) -> set[int]:
    """Return which of these jobs are no more."""
    asked = {"ids": msgspec.json.encode(ids).decode()}
    return {row["id"] for row in await database.all(_sql.jobs_gone, asked)}


async def uploads_needed(database: Database) -> set[str]:
    """Return the names of the files that imports are still to read."""
    return {row["file"] for row in await database.all(_sql.uploads_needed)}


def _remember(connection: sqlite3.Connection, islands: str) -> None:
    told = {"islands": islands}
    connection.execute(_sql.extend, told)
    connection.execute(_sql.add, told)
    connection.execute(_sql.raise_boots, told)
    # Only what came out of order leaves ranges that touch.
    while found := connection.execute(_sql.touching, told).fetchone():
        boot_id, former, latter, last = found
        connection.execute(_sql.drop, (boot_id, latter))
        connection.execute(_sql.lengthen, (boot_id, former, last))
