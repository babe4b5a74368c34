"""The rows of alarms: one open for each kind and subject; and every statement is bounded."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store import alarms, queries
from gateway.store.database import Database

GIVEN = {
    "after": 0, "limit": 10, "now_ms": 1, "id": 1, "since_ms": 1, "kinds": "[]", "before": 9,
    "scan": 10, "quiet_since_ms": 1, "before_ms": 1, "ids": "[]", "kind": "gap", "subject": "x",
    "detail": "d", "by": "me", "note": "n", "mark": None, "step_ms": 1, "dropped": 0,
    "nonces": "", "interval_ms": None,
}  # fmt: skip
STATEMENTS = [(file, name) for file in ("alarms", "watching") for name in vars(queries.load(file))]
# What grows with what there is; everything else in a plan is made by the statement itself.
GROWING = {"alarm", "one", "before", "job", "job_event", "reading", "device", "d", "boot", "b",
           "gap", "quarantine", "w"}  # fmt: skip


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    found = await Database.open(str(tmp_path / "fieldpost.db"))
    yield found
    await found.close()


@pytest.mark.parametrize(("file", "name"), STATEMENTS)
async def test_no_statement_reads_a_table_through(database: Database, file: str, name: str) -> None:
    sql = getattr(queries.load(file), name)
    told = {key: GIVEN[key] for key in re.findall(r":(\w+)", sql)}
    plan = [row["detail"] for row in await database.all(f"EXPLAIN QUERY PLAN {sql}", told)]
    for step in plan:
        if step.startswith("SCAN ") and step.split()[1] in GROWING:
            # An index that holds the open ones only; or the newest rows, so many and no more.
            newest = step == "SCAN job_event" and "ORDER BY id DESC LIMIT 2000" in sql
            assert newest or "USING INDEX alarm_open" in step, plan


async def test_one_alarm_is_open_for_each_kind_and_subject(database: Database) -> None:
    opened = [
        await database.write(lambda c, s=subject: alarms.open_alarm(c, "gap", s, "d", 1))
        for subject in ("a", "a", "b")
    ]
    assert opened == [True, False, True]
    assert await database.write(lambda c: alarms.close_open(c, "gap", "a", 5))
    assert not await database.write(lambda c: alarms.close_open(c, "gap", "a", 6))
    assert await database.write(lambda c: alarms.open_alarm(c, "gap", "a", "again", 7))
    history = await alarms.page(database, "all", 10)
    assert [(row["subject"], row["closed_at_ms"]) for row in history] == [
        ("a", None), ("b", None), ("a", 5),
    ]  # fmt: skip
    assert await alarms.count_open(database) == {"gap": 2}


async def test_an_alarm_never_ends_before_it_began(database: Database) -> None:
    await database.write(lambda c: alarms.open_alarm(c, "gap", "a", "d", 100))
    await database.write(lambda c: alarms.close_open(c, "gap", "a", 50))  # the clock went back
    row = await alarms.get(database, 1)
    assert row is not None
    assert row["closed_at_ms"] == 100


async def test_what_happens_again_is_counted_in_the_open_alarm(database: Database) -> None:
    for now_ms in (1, 2, 3):
        await database.write(lambda c, n=now_ms: alarms.happen(c, "conflict", "a", f"{n}", n))
    [row] = await alarms.page(database, "open", 10)
    found = (row["times"], row["detail"], row["opened_at_ms"], row["last_at_ms"])
    assert found == (3, "3", 1, 3)


async def test_only_what_does_not_close_by_itself_is_closed_by_a_person(
    database: Database,
) -> None:
    await database.write(lambda c: alarms.open_alarm(c, "gap", "a", "d", 1))
    with pytest.raises(alarms.NotClosable):
        await database.write(lambda c: alarms.close_alarm(c, 1, 2))
    assert not await database.write(lambda c: alarms.close_alarm(c, 2, 2))
