"""Reads of the queue stay short however many jobs there are."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.states import State
from gateway.store import job_pages, queries
from gateway.store.database import Database

NOW_MS = 1_764_529_200_000
MANY = 200_000


@pytest.fixture
async def crowded(tmp_path: Path) -> AsyncIterator[Database]:
    """A database with very many jobs that are over, many that wait, and one that failed."""
    db = await Database.open(str(tmp_path / "fieldpost.db"))
    await db.write(
        lambda c: (
            c.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)"
                " INSERT INTO job (kind, args, state, run_at_ms, created_at_ms, finished_at_ms)"
                " SELECT 'act', '{}', iif(i = 7, 'failed', iif(i % 2, 'done', 'pending')),"
                " :now + i, :now, iif(i % 2, :now, NULL) FROM n",
                {"many": MANY, "now": NOW_MS},
            ).rowcount
        )
    )
    yield db
    await db.close()


async def plan(db: Database, block: str, **given: object) -> str:
    rows = await db.all("EXPLAIN QUERY PLAN " + getattr(queries.load("jobs"), block), given)
    return "; ".join(row["detail"] for row in rows)


async def test_no_read_looks_at_all_jobs(crowded: Database) -> None:
    known = {
        "get": {"id": 1},
        "some": {"ids": "[1]"},
        "page": {"before": 1, "limit": 1},
        "page_of_state": {"before": 1, "limit": 1, "state": "failed"},
        "counts": {"now_ms": 1, "scan": 1, "levels": 1},
        "events": {"id": 1},
    }
    for block, given in known.items():
        steps = (await plan(crowded, block, **given)).split("; ")
        assert not [step for step in steps if step in ("SCAN job", "SCAN job_event")], steps
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


async def test_the_one_failed_job_among_very_many_is_found_at_once(crowded: Database) -> None:
    began = time.monotonic()
    rows = await job_pages.page(crowded, 20, state=State.FAILED)
    assert time.monotonic() - began < 0.5
    assert [row["id"] for row in rows] == [7]


async def test_the_oldest_due_is_found_among_very_many(crowded: Database) -> None:
    counts = await job_pages.counts(crowded, NOW_MS + MANY)
    assert counts == {
        "pending": MANY // 2, "running": 0, "failed": 1, "oldest_due_ms": NOW_MS + 2,
    }  # fmt: skip


async def test_moves_come_in_order(tmp_path: Path) -> None:
    db = await Database.open(str(tmp_path / "fieldpost.db"))
    add = queries.load("jobs").add_event
    for n in range(3):
        told = (1, NOW_MS + n, f"verb{n}", "pending", None, None)
        await db.write(lambda c, told=told: c.execute(add, told).rowcount)
    assert [row["verb"] for row in await job_pages.events(db, 1)] == ["verb0", "verb1", "verb2"]
    await db.close()
