"""What the pages and `/v1/status` ask costs the same, however much there is.

Each named statement is run on a database and on one with four times as many readings, rows in
quarantine, jobs and moves; SQLite counts the steps. A failure shows the plan.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.store import queries
from tools.bench.years import Years, build

NOW_MS = 1_764_633_600_000
DEVICES = 20
SMALL = Years(DEVICES, 4_000, 2_000)
LARGE = Years(DEVICES, 16_000, 8_000)
# On these a step for each row is too much; of the others there are as many as there are devices.
BIG = {"reading", "quarantine", "job", "job_event", "aggregate"}

# Every statement of these is asked by a page, the status, the metrics or the alarms.
WHOLE = ("pages", "alarms", "gauges", "watching", "tail", "facts")
OF_JOBS = ("counts", "get", "some", "page", "page_of_state", "next_due", "events", "expired")

GIVEN: dict[str, object] = {
    "limit": 10, "scan": 50, "kinds": 10, "levels": 10, "offset": 0, "before": 2**62,
    "after": 0, "end": 2**62, "from_ms": 0, "to_ms": 2**62, "now_ms": NOW_MS,
    "since_ms": 0, "before_ms": 2**62, "span_ms": 3_600_000, "sensor": None, "name": None,
    "device": "bench-0001", "subject": "bench-0001", "kind": "gap", "first": "bench-0001",
    "last": "bench-9999", "ids": "[1,2,3]", "arrivals": "[1,2,3]", "state": "done",
    "device_id": 1, "id": 1, "configured": "{}",
}  # fmt: skip
BY_BLOCK: dict[str, dict[str, object]] = {
    "devices": {"after": ""},
    "failed_kinds": {"kinds": '["daily_report"]'},
    "arrivals": {"limit": 10},
}


def blocks() -> Iterator[tuple[str, str]]:
    for file in WHOLE:
        yield from ((f"{file}.{name}", sql) for name, sql in vars(queries.load(file)).items())
    yield from ((f"jobs.{name}", getattr(queries.load("jobs"), name)) for name in OF_JOBS)


READS = [
    (name, sql)
    for name, sql in blocks()
    if re.match(r"(?:--[^\n]*\n)*\s*(SELECT|WITH)\b", sql) and " INTO " not in sql
]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[sqlite3.Connection]]:
    folder: Path = tmp_path_factory.mktemp("years")
    for years, name in ((SMALL, "small.db"), (LARGE, "large.db")):
        build(str(folder / name), years, NOW_MS)
    with (
        closing(sqlite3.connect(folder / "small.db")) as small,
        closing(sqlite3.connect(folder / "large.db")) as large,
    ):
        yield [small, large]


def given(name: str, sql: str) -> object:
    if "?" in sql:
        return [1] * sql.count("?")
    names = set(re.findall(r":([a-z_]\w*)", sql))
    told = {**GIVEN, **BY_BLOCK.get(name.partition(".")[2], {})}
    if name == "watching.devices":
        told["after"] = 0
    return {each: told.get(each, 1) for each in names}


def steps(connection: sqlite3.Connection, sql: str, params: object) -> int:
    """Return how many steps of SQLite's machine the statement takes."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(tick, 1)
    try:
        connection.execute(sql, params).fetchall()  # type: ignore[arg-type]
    finally:
        connection.set_progress_handler(None, 1)
    return count


def plan(connection: sqlite3.Connection, sql: str, params: object) -> str:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)  # type: ignore[arg-type]
    return "\n".join(row[3] for row in rows)


@pytest.mark.parametrize(("name", "sql"), READS, ids=[name for name, _ in READS])
def test_a_statement_takes_as_many_steps_however_much_there_is(databases, name, sql):
    small, large = databases
    params = given(name, sql)
    before, after = steps(small, sql, params), steps(large, sql, params)
    assert after <= before * 1.25 + 200, plan(large, sql, params)


@pytest.mark.parametrize(("name", "sql"), READS, ids=[name for name, _ in READS])
def test_a_statement_never_walks_a_big_table_but_in_its_order_up_to_a_limit(databases, name, sql):
    """A walk is "SCAN"; where one is, SQLite must not sort what it found, or join it in a loop."""
    text = plan(databases[1], sql, given(name, sql))
    named = dict(re.findall(r"(?:FROM|JOIN) (\w+)(?: AS (\w+))?", sql))
    called = {alias or table: table for table, alias in named.items()}
    walked = [called.get(x, x) for x in re.findall(r"^SCAN (\w+)", text, re.MULTILINE)]
    if BIG & set(walked):
        assert "LIMIT" in sql, text
        assert "AUTOMATIC" not in text, text


def test_the_counting_of_steps_sees_a_walk(databases):
    small, large = databases
    for sql in ("SELECT count(value) FROM reading", "SELECT max(at_ms) FROM job_event"):
        assert steps(large, sql, []) > 3 * steps(small, sql, [])
    # A plan alone does not: this one calls its walk a search.
    assert "SEARCH" in plan(large, sql, [])
