"""Who waits for a job is answered when it moves, when time is up, and when the gateway stops."""

import asyncio
import time
from typing import Any

import pytest

from gateway.web import watch
from tests.web.conftest import Open
from tests.web.house import House, problem_of

SOONER_S = 5  # than the 10 s that it would wait in vain


async def begun(house: House, request: Any) -> "asyncio.Task[Any]":
    """Return the request under way, once the gateway is waiting for its sake."""
    task = asyncio.ensure_future(request)
    before = house.looks
    async with asyncio.timeout(10):
        while house.looks < before + 2:
            assert not task.done(), task.result()
            await asyncio.sleep(0.01)
    return task


async def test_who_prefers_to_wait_gets_the_job_when_it_is_over(open_house: Open) -> None:
    house = await open_house(workers=1)
    answer = await house.job(Prefer="respond-async, wait=20")
    assert (answer.status, answer.json["state"]) == (200, "done")
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert answer.headers["Location"] == "/v1/jobs/1"
    assert "Retry-After" not in answer.headers


async def test_a_job_that_failed_is_over_too(open_house: Open) -> None:
    house = await open_house(workers=1)
    answer = await house.job("permanent", Prefer="wait=20")
    assert (answer.status, answer.json["state"]) == (200, "failed")


async def test_a_job_that_takes_longer_than_preferred_is_a_202(house: House) -> None:
    began = time.monotonic()
    answer = await house.job(Prefer="wait=1")
    assert time.monotonic() - began > 0.5
    assert (answer.status, answer.json["state"]) == (202, "pending")
    assert answer.headers["Preference-Applied"] == "wait=1"
    assert answer.headers["Retry-After"] == "1"


async def test_the_same_key_gives_the_finished_job_to_who_waits(open_house: Open) -> None:
    house = await open_house(workers=1)
    await house.until((await house.job(Idempotency_Key="k")).json["id"], "done")
    assert (await house.job(Idempotency_Key="k")).status == 202
    assert (await house.job(Idempotency_Key="k", Prefer="wait=0")).status == 200


@pytest.mark.parametrize(
    "preference", ["wait", "wait=x", "wait=-1", "handling=strict", 'a="wait=9"']
)
async def test_other_preferences_are_not_applied(house: House, preference: str) -> None:
    answer = await house.job(Prefer=preference)
    assert (answer.status, "Preference-Applied" in answer.headers) == (202, False)


async def test_looking_with_wait_is_answered_when_the_state_changes(house: House) -> None:
    await house.job()
    looking = await begun(house, house.operator("/v1/jobs/1?wait=10"))
    await house.decide(1, "cancel")
    async with asyncio.timeout(SOONER_S):
        assert (await looking).json["state"] == "discarded"


async def test_looking_with_wait_sees_a_try_that_ended_where_it_began(house: House) -> None:
    await house.job()
    looking = await begun(house, house.operator("/v1/jobs/1?wait=10"))
    await house.db.write(lambda c: c.execute("UPDATE job SET attempts = 1").rowcount)
    async with asyncio.timeout(SOONER_S):
        job = (await looking).json
    assert (job["state"], job["attempts"]) == ("pending", 1)


async def test_looking_with_wait_at_what_is_over_does_not_wait(house: House) -> None:
    await house.job()
    await house.decide(1, "cancel")
    before = house.looks
    assert (await house.operator("/v1/jobs/1?wait=10")).json["state"] == "discarded"
    assert house.looks == before


@pytest.mark.parametrize("wait", ["11", "x", "-1", "1.5"])
async def test_how_long_to_wait_is_said_rightly_or_refused(house: House, wait: str) -> None:
    await house.job()
    assert problem_of(await house.operator(f"/v1/jobs/1?wait={wait}"))["status"] == 400


async def test_both_waits_end_with_the_row_as_it_is_when_the_gateway_stops(house: House) -> None:
    asking = await begun(house, house.job(Prefer="wait=30"))
    looking = await begun(house, house.operator("/v1/jobs/1?wait=10"))
    house.stopping.set()
    async with asyncio.timeout(1):
        asked, looked = await asyncio.gather(asking, looking)
    assert (asked.status, asked.json["state"]) == (202, "pending")
    assert (looked.status, looked.json["state"]) == (200, "pending")


async def test_hundreds_who_wait_share_their_looks_and_leave_the_readers_to_others(
    house: House,
) -> None:
    for _ in range(10):
        await house.job()
    waiting = [
        asyncio.ensure_future(house.operator(f"/v1/jobs/{1 + n % 10}?wait=10")) for n in range(300)
    ]
    await begun(house, house.operator("/v1/jobs/1?wait=10"))
    began, looks_before = time.monotonic(), house.looks
    assert (await house.operator("/v1/status")).json["jobs"]["pending"] == 10
    looks = house.looks - looks_before
    assert looks <= 2 + (time.monotonic() - began) / watch.LOOK_S
    assert not any(task.done() for task in waiting)
    for job_id in range(1, 11):
        await house.decide(job_id, "cancel")
    answers = await asyncio.gather(*waiting)
    assert {answer.json["state"] for answer in answers} == {"discarded"}


async def test_a_job_that_is_pruned_under_ones_eyes_is_told_as_it_was_last(house: House) -> None:
    await house.job()
    looking = await begun(house, house.operator("/v1/jobs/1?wait=10"))
    await house.db.write(lambda c: c.execute("DELETE FROM job").rowcount)
    assert (await looking).json["state"] == "pending"
