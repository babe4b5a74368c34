"""What `/v1/status` says of the jobs."""

from typing import Any

from tests.web.conftest import Open
from tests.web.house import NOW_MS, House


async def jobs_of(house: House) -> Any:
    return (await house.operator("/v1/status")).json["jobs"]


async def test_the_status_counts_what_waits_and_since_when(house: House) -> None:
    assert await jobs_of(house) == {
        "pending": 0, "running": 0, "failed": 0, "oldest_due_ms": None,
    }  # fmt: skip
    for priority, run_at_ms in ((0, NOW_MS + 9), (5, NOW_MS - 3), (-5, NOW_MS - 7), (5, NOW_MS)):
        await house.ask_for({"kind": "act", "priority": priority, "run_at_ms": run_at_ms})
    assert await jobs_of(house) == {
        "pending": 4, "running": 0, "failed": 0, "oldest_due_ms": NOW_MS - 7,
    }  # fmt: skip


async def test_a_job_that_is_not_due_yet_is_not_the_oldest_due(house: House) -> None:
    await house.ask_for({"kind": "act", "run_at_ms": NOW_MS + 1})
    assert (await jobs_of(house))["oldest_due_ms"] is None
    house.now_ms[0] += 1
    assert (await jobs_of(house))["oldest_due_ms"] == NOW_MS + 1


async def test_running_and_failed_jobs_are_counted_and_failed_ones_are_trouble(
    open_house: Open,
) -> None:
    house = await open_house(workers=2)
    running = {"kind": "act", "args": {"do": "wait", "mark": "a", "seconds": 60}}
    await house.until((await house.ask_for(running)).json["id"], "running")
    failed = (await house.job("permanent")).json["id"]
    await house.until(failed, "failed")
    status = (await house.operator("/v1/status")).json
    assert status["jobs"] | {"oldest_due_ms": None} == {
        "pending": 0, "running": 1, "failed": 1, "oldest_due_ms": None,
    }  # fmt: skip
    assert (status["ok"], status["headline"]) == (False, "1 job failed")
    await house.decide(failed, "discard")
    assert (await house.operator("/v1/status")).json["ok"] is True
