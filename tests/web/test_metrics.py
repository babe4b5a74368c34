"""`/metrics`: the numbers are right, bounded, and those that the dashboard and the alerts name."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from gateway.events import ReadingsStored
from gateway.metrics import OTHER, Metrics
from gateway.states import State
from gateway.store import gauges, queries
from gateway.store.alarms import open_alarm
from gateway.store.database import connect
from gateway.store.gauges import Gauges
from gateway.store.moves import Move
from tests.web.house import NOW_MS, House, batch, body

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations"
NOTHING = Gauges({}, 0.0, {}, 0, 0, 0, 0, 0)
GIVE_UP_S = 15


def numbers(text: str) -> dict[tuple[Any, ...], float]:
    """Return each sample by its name and the values of its labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def asked(house: House) -> dict[tuple[Any, ...], float]:
    answer = await house.operator("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return numbers(answer.text)


async def until(house: House, *sample: str) -> dict[tuple[Any, ...], float]:
    """Return the numbers as soon as that one is not 0."""
    async with asyncio.timeout(GIVE_UP_S):
        while not (found := await asked(house)).get(sample):
            await asyncio.sleep(0.05)
    return found


async def test_a_stranger_gets_no_numbers(house: House) -> None:
    assert (await house.ask("GET", "/metrics")).status == 401


async def test_every_reading_is_counted_by_what_became_of_it(registered: House) -> None:
    await registered.signed("esp32-1", body(batch(count=3)))
    await registered.signed("esp32-1", body(batch(count=3)))
    other = batch()
    other["readings"][0]["value"] = 99
    other["readings"].append({"id": "x"})
    await registered.signed("esp32-1", body(other))
    found = await asked(registered)
    names = ("stored", "duplicate", "rejected", "conflicting")
    assert [found[f"readings_{name}_total",] for name in names] == [3, 3, 2, 1]
    assert found["batches_total",] == found["ingest_seconds_count",] == 3
    assert found["devices_known",] == 1


async def test_jobs_are_counted_by_kind_and_outcome(open_house: Any) -> None:
    house = await open_house(workers=1)
    await house.job()
    await house.job("permanent")
    found = await until(house, "jobs_given_up_total", "act")
    assert found["jobs_added_total", "act"] == found["jobs_claimed_total", "act"] == 2
    assert found["jobs_finished_total", "act"] == found["jobs_failed_total", "act"] == 1
    assert found["job_seconds_count", "act", "finished"] == 1
    assert found["job_seconds_count", "act", "failed"] == 1
    assert found["queue_depth", "failed"] == 1


async def test_how_things_stand_is_told(house: House) -> None:
    await house.job()
    house.now_ms[0] += 30_000
    await house.db.write(lambda c: open_alarm(c, "gap", "b", "", NOW_MS))
    found = await asked(house)
    assert found["queue_depth", "pending"] == 1
    assert found["queue_oldest_due_seconds",] == 30
    assert found["alarms_open", "gap"] == 1
    assert found["database_bytes",] > 0
    assert ("loop_lag_seconds",) in found
    await house.db.write(lambda c: c.execute("UPDATE alarm SET closed_at_ms = 1"))
    assert ("alarms_open", "gap") not in await asked(house)


def test_a_kind_that_nobody_knows_gets_no_label_of_its_own() -> None:
    metrics = Metrics(["act"])
    strange = [Move(n, "claim", State.RUNNING, f'k{n}"}} 1\nforged_total 7') for n in range(50)]
    metrics.moved([*strange, Move(1, "claim", State.RUNNING, None)])
    found = numbers(metrics.exposition(NOTHING).decode())
    assert found["jobs_claimed_total", OTHER] == 51
    assert ("forged_total",) not in found


def test_a_label_can_not_forge_a_line() -> None:
    forged = 'gap"} 1\nforged_total 7\\'
    found = numbers(Metrics().exposition(NOTHING._replace(alarms={forged: 2})).decode())
    assert found["alarms_open", forged] == 2
    assert ("forged_total",) not in found


async def test_no_number_of_devices_adds_a_line(open_mode: House) -> None:
    async def lines() -> int:
        return len((await open_mode.ask("GET", "/metrics")).text.splitlines())

    await open_mode.ask("POST", "/v1/readings", body(batch("a")), Content_Type="application/json")
    before = await lines()
    for n in range(5):
        sent = body(batch(f"b{n}"))
        await open_mode.ask("POST", "/v1/readings", sent, Content_Type="application/json")
    assert await lines() == before


def test_two_gateways_in_one_process_count_apart() -> None:
    one, other = Metrics(["act"]), Metrics(["act"])
    one.moved([Move(1, "claim", State.RUNNING, "act")])
    assert "jobs_claimed_total" in one.exposition(NOTHING).decode()
    assert 'jobs_claimed_total{kind="act"}' not in other.exposition(NOTHING).decode()


def test_what_the_page_shows_is_unknown_before_it_is_measured() -> None:
    known = Metrics(monotonic=lambda: 5.0).snapshot()
    assert known == {
        "ingest_p99_ms": None, "commits_per_s": None, "batch_size": None, "loop_lag_ms": None,
        "uptime_s": 0.0,
    }  # fmt: skip


async def test_the_lag_of_the_loop_and_the_rate_of_commits_are_measured() -> None:
    metrics = Metrics()
    measuring = asyncio.create_task(metrics.measure())
    async with asyncio.timeout(GIVE_UP_S):
        while metrics.snapshot()["commits_per_s"] is None or not metrics.snapshot()["batch_size"]:
            metrics.committed(0.002, 4)
            await asyncio.sleep(0.05)
    measuring.cancel()
    known = metrics.snapshot()
    assert known["batch_size"] == 4
    assert known["commits_per_s"]
    assert known["loop_lag_ms"] is not None
    found = numbers(metrics.exposition(NOTHING).decode())
    assert found["commit_seconds_count",] == found["commit_requests_count",] > 0


def test_the_p99_of_ingest_is_what_one_delivery_in_a_hundred_waits_longer_than() -> None:
    metrics = Metrics()
    for ms in range(200, 0, -1):
        metrics.hear(ReadingsStored("b", 1, 0, 0, 0, ms / 1000))
    assert metrics.snapshot()["ingest_p99_ms"] == 199
    assert numbers(metrics.exposition(NOTHING).decode())["ingest_seconds_count",] == 200


def named() -> set[str]:
    """Return the metrics that the dashboard and the alert rules name."""
    dashboard = json.loads((OPERATIONS / "grafana-dashboard.json").read_text())
    expressions = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    rules = (OPERATIONS / "alerts.yml").read_text()
    expressions += re.findall(r"^\s+expr: (.+)$", rules, re.MULTILINE)
    assert len(expressions) > 20
    words = {word for text in expressions for word in re.findall(r"[a-z][a-z_]+(?=[{\[])", text)}
    words |= {w for text in expressions for w in re.findall(r"\b[a-z]+_[a-z_]+\b", text)}
    return words - {"histogram_quantile", "group_left"}


def test_the_dashboard_and_the_alerts_name_only_what_is_exported() -> None:
    metrics = Metrics(["act"])
    metrics.moved([Move(1, verb, State.RUNNING, "act", 5) for verb in ("finish", "enqueue")])
    metrics.moved([Move(1, verb, State.FAILED, "act", 5) for verb in ("fail", "rescue")])
    metrics.moved([Move(1, verb, State.PENDING, "act") for verb in ("claim", "retry", "release")])
    metrics.moved([Move(1, "drop", State.DISCARDED, "act")])
    gauged = NOTHING._replace(jobs={"pending": 1}, alarms={"gap": 1})
    exported = {name for name, *_ in numbers(metrics.exposition(gauged).decode())}
    assert named() <= exported | {"up", "kind", "outcome", "state", "le", "version"}
    told = (OPERATIONS.parent / "operations.md").read_text()
    stems = {re.sub("_(bucket|count|sum|created)$", "", name) for name in exported}
    assert not [name for name in stems if f"`{name}" not in told]


def test_no_count_walks_over_all_that_is_over(tmp_path: Path) -> None:
    with closing(connect(str(tmp_path / "fieldpost.db"))) as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {gauges._sql.alarms_open}", {"scan": 1}
        ).fetchall()
    assert any("alarm_open" in row[3] for row in plan), plan


async def test_counting_jobs_costs_the_same_however_many_are_over(house: House) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
            " INSERT INTO job (kind, args, state, run_at_ms, created_at_ms, finished_at_ms)"
            " SELECT 'act', '{}', 'done', 1, 1, 1 FROM n"
        )

    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def measured() -> int:
        nonlocal steps
        steps = 0
        with closing(sqlite3.connect(house.db.path)) as connection:
            connection.set_progress_handler(count, 100)
            given = {"now_ms": NOW_MS, "scan": 100_000, "levels": 100}
            connection.execute(queries.load("jobs").counts, given).fetchall()
        return steps

    before = measured()
    await house.db.write(fill)
    assert measured() <= before + 1
