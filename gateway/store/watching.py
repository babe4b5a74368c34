"""What the rules of the alarms look at, and what is remembered of a device between two looks."""

import sqlite3
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from gateway.store import queries
from gateway.store.database import Database

_DEVICES_AT_ONCE = 200  # between two pieces others have their turn on the loop
MOST_GAPPED = 2000  # boots that miss something and are looked at
_ARRIVALS = 300
_JUST_MS = 60_000

_sql = queries.load("watching")


class Seen(NamedTuple):
    """A device that was heard, and what was known of it at the last look."""

    id: int
    name: str
    last_seen_at_ms: int
    boot: str | None
    seq: int | None
    stored: int
    period_ms: int | None  # as it said
    dropped: int
    is_known: int  # 0 or 1
    dropped_before: int
    nonces: str  # of its last present boots, with spaces, in order
    interval_ms: int | None  # learned

    @property
    def mark(self) -> str:
        """What differs whenever the device was heard again."""
        return f"{self.last_seen_at_ms} {self.boot} {self.seq}"


class Gapped(NamedTuple):
    """A boot that misses readings; the first ranges of them, and how many in all."""

    device: str
    boot: str
    boot_id: int
    ranges: list[tuple[int, int]]
    missing: int


class Progress(NamedTuple):
    """What changes when the queue gets on."""

    ended: int | None
    done: int | None


async def devices(database: Database) -> AsyncIterator[list[Seen]]:
    """Yield all devices that were ever heard, in pieces."""
    after = 0
    while rows := await database.all(_sql.devices, {"after": after, "limit": _DEVICES_AT_ONCE}):
        yield [Seen(*row) for row in rows]
        after = rows[-1]["id"]


def remember(connection: sqlite3.Connection, seen: Seen) -> None:
    """Keep its drops, nonces and interval for the looks to come."""
    told = {"id": seen.id, "dropped": seen.dropped, "nonces": seen.nonces,
            "interval_ms": seen.interval_ms}  # fmt: skip
    connection.execute(_sql.remember, told)


async def arrivals(database: Database, device_id: int) -> list[str]:
    """Return the boots of the device's newest readings, in the order in which they came."""
    rows = await database.all(_sql.arrivals, {"id": device_id, "limit": _ARRIVALS})
    return [row["boot"] for row in reversed(rows)]


async def is_bringing_in(database: Database, now_ms: int) -> bool:
    """Return whether a job stores, or just stored, readings that no device sends now."""
    told = {"since_ms": now_ms - _JUST_MS}
    return await database.one(_sql.is_bringing_in, told) is not None


async def gapped(database: Database) -> list[Gapped]:
    """Return the boots that miss readings, of MOST_GAPPED at most."""
    rows = await database.all(_sql.gapped, {"limit": MOST_GAPPED})
    ranges = [msgspec.json.decode(row["ranges"], type=list[tuple[int, int]]) for row in rows]
    return [
        Gapped(row["device"], row["boot"], row["boot_id"], these, row["missing"])
        for row, these in zip(rows, ranges, strict=True)
    ]


async def oldest_due_ms(database: Database, now_ms: int) -> int | None:
    """Return since when the job that waits longest could have been done; None: none is due."""
    row = await database.one(_sql.oldest_due, {"now_ms": now_ms})
    found: int | None = row["run_at_ms"] if row else None
    return found


async def progress(database: Database) -> Progress:
    row = await database.one(_sql.progress)
    assert row is not None  # it has no FROM
    return Progress(*row)


async def failed_kinds(database: Database, kinds: list[str]) -> set[str]:
    """Return those of these kinds of which a job is failed."""
    told = {"kinds": msgspec.json.encode(kinds).decode()}
    return {row["kind"] for row in await database.all(_sql.failed_kinds, told)}
