"""Alarms: one open row for each (kind, subject).

What takes a connection is for use inside any transaction of the writer: an alarm is opened and
closed in the one of its cause, or by the watcher.
"""

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gateway.alarm_texts import may_be_closed
from gateway.store import queries

if TYPE_CHECKING:  # the database opens an alarm of its own when it was damaged
    from gateway.store.database import Database

NEWEST = 2**63 - 1
# Open rows that are looked at; there is one for each kind and device, and some more.
MOST_OPEN = 20_000

_sql = queries.load("alarms")


class Open(NamedTuple):
    """An open alarm, as its rule looks at it."""

    id: int
    kind: str
    subject: str
    detail: str
    mark: str | None
    opened_at_ms: int
    last_at_ms: int | None
    told_at_ms: int | None


class Untold(NamedTuple):
    """An open alarm that nobody was told of yet."""

    id: int
    kind: str
    subject: str
    detail: str
    opened_at_ms: int


class NotClosable(Exception):
    """An alarm of this kind closes by itself, when it is no longer true."""


def open_alarm(
    connection: sqlite3.Connection,
    kind: str,
    subject: str,
    detail: str,
    now_ms: int,
    mark: str | None = None,
) -> bool:
    """Open an alarm, or leave the one that is open as it is; return whether it was opened.

    Args:
        mark: what its rule wants to know again when it looks whether it is still true.
    """
    told = {"kind": kind, "subject": subject, "detail": detail, "now_ms": now_ms, "mark": mark}
    return connection.execute(_sql.open, told).rowcount == 1


def happen(
    connection: sqlite3.Connection, kind: str, subject: str, detail: str, now_ms: int
) -> None:
    """Open an alarm of an event, or note in the open one that it happened again."""
    told = {"kind": kind, "subject": subject, "detail": detail, "now_ms": now_ms}
    connection.execute(_sql.happen, told)


def restate(connection: sqlite3.Connection, kind: str, subject: str, detail: str) -> None:
    """Say in the open alarm what is true now."""
    connection.execute(_sql.restate, {"kind": kind, "subject": subject, "detail": detail})


def close_open(connection: sqlite3.Connection, kind: str, subject: str, now_ms: int) -> bool:
    """Close the open alarm of this kind and subject; return False if there is none."""
    told = {"kind": kind, "subject": subject, "now_ms": now_ms}
    return connection.execute(_sql.close_open, told).rowcount == 1


def close_alarm(
    connection: sqlite3.Connection, alarm_id: int, now_ms: int, by: str = "a person"
) -> bool:
    """Close an open alarm by a person's decision; return False if there is none of that id.

    Raises:
        NotClosable: it would only open again, as what it says is still true.
    """
    row = connection.execute(_sql.get, {"id": alarm_id}).fetchone()
    if row is not None and not may_be_closed(row[1]):
        raise NotClosable(row[1])
    told = {"id": alarm_id, "now_ms": now_ms, "by": by}
    return connection.execute(_sql.close, told).rowcount == 1


def acknowledge(
    connection: sqlite3.Connection, alarm_id: int, now_ms: int, by: str, note: str
) -> bool:
    """Note that somebody knows of it; it stays open. Return False if it is not open."""
    told = {"id": alarm_id, "now_ms": now_ms, "by": by, "note": note}
    return connection.execute(_sql.acknowledge, told).rowcount == 1


def job_failed(connection: sqlite3.Connection, job_id: int, now_ms: int) -> None:
    """Open the alarm of the job's kind, in the transaction that made it failed."""
    connection.execute(_sql.job_failed, {"id": job_id, "now_ms": now_ms})


def job_is_no_more_failed(connection: sqlite3.Connection, now_ms: int) -> None:
    """Close the alarms of those kinds of jobs of which none is failed any more."""
    connection.execute(_sql.job_is_no_more_failed, {"now_ms": now_ms})


def step_clock(connection: sqlite3.Connection, step_ms: int) -> None:
    """Move with the wall clock when the open ones happened last."""
    connection.execute(_sql.step, {"step_ms": step_ms})


def untold(connection: sqlite3.Connection, now_ms: int, quiet_ms: int, limit: int) -> list[Untold]:
    """Return open ones nobody was told of, none whose like was told within `quiet_ms`."""
    told = {"now_ms": now_ms, "quiet_since_ms": now_ms - quiet_ms, "limit": limit}
    return [Untold(*row) for row in connection.execute(_sql.untold, told)]


def note_told(connection: sqlite3.Connection, ids: list[int], now_ms: int) -> None:
    told = {"ids": msgspec.json.encode(ids).decode(), "now_ms": now_ms}
    connection.execute(_sql.tell, told)


def prune(connection: sqlite3.Connection, before_ms: int, limit: int = 500) -> int:
    """Delete up to `limit` that were closed before `before_ms`; return how many."""
    told = {"before_ms": before_ms, "limit": limit}
    return connection.execute(_sql.prune, told).rowcount


async def list_open(database: "Database") -> list[sqlite3.Row]:
    """Return id, kind, subject, detail and opened_at_ms of the open ones, oldest first."""
    return await database.all(_sql.list_open)


async def count_open(database: "Database") -> dict[str, int]:
    """Return how many of each kind are open, of MOST_OPEN at most."""
    rows = await database.all(_sql.count_open, {"scan": MOST_OPEN})
    return {row["kind"]: row["count"] for row in rows}


async def every_open(database: "Database") -> dict[tuple[str, str], Open]:
    """Return all that are open, by kind and subject."""
    rows = await database.all(_sql.every_open, {"limit": MOST_OPEN})
    return {(row["kind"], row["subject"]): Open(*row) for row in rows}


async def get(database: "Database", alarm_id: int) -> sqlite3.Row | None:
    return await database.one(_sql.get, {"id": alarm_id})


async def page(
    database: "Database", state: str, limit: int, before: int = NEWEST
) -> list[sqlite3.Row]:
    """Return at most `limit` alarms with ids below `before`, the newest first.

    Args:
        state: open, closed or all.
    """
    sql = {"open": _sql.page_open, "closed": _sql.page_closed, "all": _sql.page_all}[state]
    return await database.all(sql, {"limit": limit, "before": before})
