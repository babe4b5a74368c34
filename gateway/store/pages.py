"""Reads for the pages and the API: short, one bounded piece at a time, nothing held in between."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from gateway.store import queries
from gateway.store.database import Database

MOST_AT_ONCE = 1000
EVER = (-(2**63), 2**63 - 1)

# Rows that one read looks at, so that no reader holds a snapshot for long, whatever is asked.
_SCAN = 2000
# Reads that one page of readings may take before it hands back what it has, and where it got to.
_MOST_SCANS = 50
# Rows that a count looks at; what lies beyond is left out of it.
_MOST_COUNTED = 100_000
_MOST_GAPS = 20  # of one device

_sql = queries.load("pages")


@dataclass(frozen=True)
class Filter:
    """Which readings are asked for: `from_ms` <= at_ms < `to_ms`."""

    device: str | None = None
    sensor: str | None = None
    from_ms: int = EVER[0]
    to_ms: int = EVER[1]


class Page(NamedTuple):
    """Readings in order of arrival. `next` goes on behind them; None: that is all for now."""

    rows: list[sqlite3.Row]
    next: int | None


async def readings(db: Database, wanted: Filter, after: int, limit: int) -> Page:
    """Return at most `limit` readings that arrived after number `after`.

    It may be fewer although there are more, where few of very many fit: see `Page.next`.
    """
    rows: list[sqlite3.Row] = []
    for _ in range(_MOST_SCANS):
        end = await _scan_end(db, wanted, after)
        if end is None:
            return Page(rows, None)
        rows += await _between(db, wanted, after, end, limit - len(rows))
        if len(rows) >= limit:
            return Page(rows, rows[-1]["arrival"])
        after = end
    return Page(rows, after)


async def every_reading(
    db: Database, wanted: Filter, after: int, limit: int | None
) -> AsyncIterator[list[sqlite3.Row]]:
    """Yield all there is, or the first `limit`, in pieces; it ends although more may arrive."""
    newest = (await _row(db, _sql.newest_arrival, {}))["id"] or 0
    left = EVER[1] if limit is None else limit
    while left > 0 and after < newest:
        end = await _scan_end(db, wanted, after)
        if end is None:
            return
        rows = await _between(db, wanted, after, end, min(left, _SCAN))
        yield rows
        left -= len(rows)
        after = end


async def newest_readings(db: Database, limit: int) -> list[sqlite3.Row]:
    return await db.all(_sql.newest_readings, {"limit": limit})


async def devices(db: Database, after: str, limit: int) -> list[sqlite3.Row]:
    """Return devices with names behind `after`, in order of name."""
    return await db.all(_sql.devices, {"after": after, "limit": limit})


async def gaps(db: Database, first: str, last: str) -> list[sqlite3.Row]:
    """Return the newest gaps of each device from `first` to `last`, with all it is missing."""
    return await db.all(_sql.gaps_of_devices, {**_span(first, last), "limit": _MOST_GAPS})


async def lost(db: Database, first: str, last: str) -> dict[str, int]:
    """Return how many numbers each of these devices says will never come."""
    rows = await db.all(_sql.lost_of_devices, _span(first, last))
    return {row["device"]: row["lost"] for row in rows}


async def counts(db: Database) -> dict[str, int]:
    """Return total, seen, silent (devices), stored, duplicates, quarantined, missing (readings)."""
    scan = {"scan": _MOST_COUNTED}
    found = await _row(db, _sql.device_counts, scan)
    return dict(found) | dict(await _row(db, _sql.missing, scan))


async def probe_write(db: Database) -> None:
    """Write to the database, changing nothing. Raises Unavailable when that can not be done."""

    def write(connection: sqlite3.Connection) -> None:
        connection.execute(_sql.write_probe)

    await db.write(write)


def _span(first: str, last: str) -> dict[str, object]:
    return {"first": first, "last": last, "scan": _MOST_COUNTED}


async def _scan_end(db: Database, wanted: Filter, after: int) -> int | None:
    block = _sql.scan_end if wanted.device is None else _sql.scan_end_of_device
    given = {"device": wanted.device, "after": after, "scan": _SCAN}
    end: int | None = (await _row(db, block, given))["id"]
    return end


async def _between(
    db: Database, wanted: Filter, after: int, end: int, limit: int
) -> list[sqlite3.Row]:
    block = _sql.readings_between if wanted.device is None else _sql.readings_of_device_between
    return await db.all(block, {**asdict(wanted), "after": after, "end": end, "limit": limit})


async def _row(db: Database, sql: str, given: Mapping[str, object]) -> sqlite3.Row:
    row = await db.one(sql, given)
    assert row is not None  # these aggregate, so there always is one
    return row
