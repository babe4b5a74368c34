"""What is counted when somebody asks how things stand. Each read is of a bounded number of rows."""

from pathlib import Path
from typing import NamedTuple

from gateway.store import job_pages, pages, queries
from gateway.store.database import MEMORY, Database

_MOST_COUNTED = 10_000  # open alarms

_sql = queries.load("gauges")


class Gauges(NamedTuple):
    """How things stand.

    Attributes:
        jobs: how many are pending, running, failed.
        oldest_due_s: how long the job that is due longest has been so, 0 if none is.
        alarms: how many are open, by kind.
    """

    jobs: dict[str, int]
    oldest_due_s: float
    alarms: dict[str, int]
    devices: int
    silent: int
    missing: int
    database_bytes: int
    wal_bytes: int


async def read(db: Database, now_ms: int) -> Gauges:
    jobs = await job_pages.counts(db, now_ms)
    oldest_due_ms = jobs.pop("oldest_due_ms")
    counts = await pages.counts(db)
    alarms = await db.all(_sql.alarms_open, {"scan": _MOST_COUNTED})
    return Gauges(
        jobs={state: count or 0 for state, count in jobs.items()},
        oldest_due_s=0.0 if oldest_due_ms is None else max(now_ms - oldest_due_ms, 0) / 1000,
        alarms={row["kind"]: row["count"] for row in alarms},
        devices=counts["total"],
        silent=counts["silent"],
        missing=counts["missing"],
        database_bytes=_size(db, ""),
        wal_bytes=_size(db, "-wal"),
    )


def _size(db: Database, suffix: str) -> int:
    if db.path == MEMORY:
        return 0
    try:
        return Path(db.path + suffix).stat().st_size
    except OSError:
        return 0  # there is no WAL just now
