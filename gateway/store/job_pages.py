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

_sql = queries.load("jobs")


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


async def counts(db: Database, now_ms: int) -> dict[str, int | None]:
    """Return pending, running, failed, and oldest_due_ms (None: nothing is due)."""
    told = {"now_ms": now_ms, "scan": _MOST_COUNTED, "levels": _MOST_LEVELS}
    row = await db.one(_sql.counts, told)
    assert row is not None  # it aggregates
    return dict(row)


async def events(db: Database, id: int) -> list[sqlite3.Row]:
    """Return at_ms, verb, state, worker and detail of the last moves of a job, in order."""
    return (await db.all(_sql.events, {"id": id}))[::-1]
