"""What `/v1/status` and the page say of the jobs."""

import re
from typing import Any

from tests.web.conftest import Open
from tests.web.house import NOW_MS, House
from tests.web.test_status import NASTY, said


async def jobs_of(house: House) -> Any:
    return (await house.operator("/v1/status")).json["jobs"]


async def page(house: House) -> str:
    return (await house.operator("/status", Accept="text/html")).text


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
    shown = said(await page(house))
    assert "Jobs (0 pending, 1 running, 1 failed)" in shown
    assert f"{failed} act failed 0 % 1 never" in shown
    assert "running 50 % waiting" in shown or "running 0 %" in shown
    await house.decide(failed, "discard")
    assert (await house.operator("/v1/status")).json["ok"] is True


async def test_the_page_shows_the_newest_20_jobs(house: House) -> None:
    assert "None yet." in said(await page(house)).partition("Jobs (")[2]
    for _ in range(21):
        await house.job()
    table = said(await page(house)).partition("Jobs (21 pending")[2].partition("Last readings")[0]
    assert re.findall(r"(\d+) act", table) == [str(number) for number in range(21, 1, -1)]


async def test_what_jobs_say_can_not_become_markup(house: House) -> None:
    await house.job()
    sql = "UPDATE job SET kind = :x, stage = :x, error = :x"
    await house.db.write(lambda c: c.execute(sql, {"x": NASTY}).rowcount)
    markup = await page(house)
    assert "<script" not in markup
    assert said(markup).count(NASTY) == 3
