"""Reads of the queue for the pages, the API and the command line: short, each of few rows."""

import sqlite3
from collections.abc import Iterable

import msgspec

from gateway.states import State
from gateway.store import queries
from gateway.store.database import Database

NEWEST = 2**63 - 1

# Rows that a count looks at; what lies beyond is left out of it. Priorities, likewise.
_MOST_COUNTED = 100_000
_MOST_LEVELS = 100

# Moves and jobs of the last while that a figure is made of; what lies beyond is left out of it.
MOST_MOVES = 20_000
_MOST_JOBS = 5000
_MOST_KINDS = 50

_sql = queries.load("jobs")
_pages = queries.load("pages")


async def get(db: Database, id: int) -> sqlite3.Row | None:
    return await db.one(_sql.get, {"id": id})


async def some(db: Database, ids: Iterable[int]) -> dict[int, sqlite3.Row]:
    """Return those of these jobs that there are, by id, in one read."""
    rows = await db.all(_sql.some, {"ids": msgspec.json.encode(list(ids)).decode()})
    return {row["id"]: row for row in rows}


async def page(
    db: Database, limit: int, before: int = NEWEST, state: State | None = None
) -> list[sqlite3.Row]:
    """Return at most `limit` jobs with ids below `before`, the newest first."""
    told = {"before": before, "limit": limit}
    if state is None:
        return await db.all(_sql.page, told)
    return await db.all(_sql.page_of_state, {**told, "state": state})


async def asked_by(
    db: Database, caller: str, limit: int, before: int = NEWEST, state: State | None = None
) -> list[sqlite3.Row]:
    """Return at most `limit` jobs that this device asked for, as `page` does."""
    told = {"caller": caller, "before": before, "limit": limit, "state": state}
    return await db.all(_sql.page_of_device, told)


async def counts(db: Database, now_ms: int) -> dict[str, int | None]:
    """Return pending, running, failed, and oldest_due_ms (None: nothing is due)."""
    told = {"now_ms": now_ms, "scan": _MOST_COUNTED, "levels": _MOST_LEVELS}
    row = await db.one(_sql.counts, told)
    assert row is not None  # it aggregates
    return dict(row)


async def events(db: Database, id: int) -> list[sqlite3.Row]:
    """Return at_ms, verb, state, worker and detail of the last moves of a job, in order."""
    return (await db.all(_sql.events, {"id": id}))[::-1]


async def running(db: Database, limit: int) -> list[sqlite3.Row]:
    """Return jobs that a worker has, with its name and lease; the oldest sign of life first."""
    return await db.all(_pages.jobs_running, {"limit": limit})


async def due(db: Database, limit: int) -> list[sqlite3.Row]:
    """Return pending jobs in the order in which they will be taken."""
    return await db.all(_pages.jobs_due, {"limit": limit})


async def listed(
    db: Database, limit: int, before: int = NEWEST, state: State | None = None
) -> list[sqlite3.Row]:
    """Return at most `limit` jobs with ids below `before`, the newest first, with their worker."""
    told = {"before": before, "limit": limit}
    if state is None:
        return await db.all(_pages.jobs_newest, told)
    return await db.all(_pages.jobs_of_state, {**told, "state": state})


async def whole(db: Database, id: int) -> sqlite3.Row | None:
    """Return a job with its worker and lease."""
    return await db.one(_pages.job_of_page, {"id": id})


async def moves(db: Database, since_ms: int) -> list[sqlite3.Row]:
    """Return verb, state, count and oldest_ms of the moves since then, of MOST_MOVES at most."""
    return await db.all(_pages.moves_since, {"since_ms": since_ms, "scan": MOST_MOVES})


async def times(db: Database, since_ms: int) -> list[sqlite3.Row]:
    """Return how long the jobs of each kind took that were done or failed since then.

    kind, count, failed, response_ms (from being asked for to the end), work_ms (of the last try),
    and the longest of both.
    """
    told = {"since_ms": since_ms, "scan": _MOST_JOBS, "kinds": _MOST_KINDS}
    return await db.all(_pages.times_since, told)
