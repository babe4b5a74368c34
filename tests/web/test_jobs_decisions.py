"""What a person decides about a job: every decision in every state, by the table of the moves."""

from typing import Any

import pytest

from gateway.states import State, Verb, may
from tests.web.conftest import Open
from tests.web.house import House, problem_of

# What is asked for to bring a job into a state, and whether workers are needed for it.
WAYS = {
    State.PENDING: {"do": "nothing"},
    State.RUNNING: {"do": "wait", "seconds": 60},
    State.DONE: {"do": "nothing"},
    State.FAILED: {"do": "permanent"},
    State.DISCARDED: {"do": "nothing"},
}
DECISIONS = (Verb.RETRY, Verb.DISCARD, Verb.CANCEL)


async def job_in(open_house: Open, state: State) -> tuple[House, Any]:
    house = await open_house(workers=0 if state in (State.PENDING, State.DISCARDED) else 1)
    asked = {"kind": "act", "args": WAYS[state] | {"mark": "a"}}
    job_id = (await house.ask_for(asked, X_Request_ID="r1")).json["id"]
    if state is State.DISCARDED:
        await house.decide(job_id, "cancel")
    return house, await house.until(job_id, state)


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("verb", DECISIONS)
async def test_a_decision_is_made_where_the_table_has_it_and_else_refused(
    open_house: Open, state: State, verb: Verb
) -> None:
    house, job = await job_in(open_house, state)
    answer = await house.decide(job["id"], verb)
    if may(state, verb):
        assert answer.status == (202 if state is State.RUNNING else 200)
        assert answer.json["request_id"] == "r1"
    else:
        assert (answer.status, f"is {state}:" in problem_of(answer)["detail"]) == (409, True)
        assert (await house.operator(f"/v1/jobs/{job['id']}")).json["state"] == state


async def test_cancel_takes_a_pending_job_back(open_house: Open) -> None:
    house, job = await job_in(open_house, State.PENDING)
    assert (await house.decide(job["id"], "cancel")).json["state"] == "discarded"


async def test_cancel_asks_a_running_job_to_stop_and_it_does(open_house: Open) -> None:
    house, job = await job_in(open_house, State.RUNNING)
    answer = (await house.decide(job["id"], "cancel")).json
    assert (answer["state"], answer["cancel_requested"]) == ("running", True)
    job = await house.until(job["id"], "discarded")
    assert job["finished_ms"] is not None


async def test_retry_begins_anew_and_keeps_the_error_until_the_next_end(open_house: Open) -> None:
    house, job = await job_in(open_house, State.FAILED)
    assert (job["attempts"], job["error"]) == (1, "never")
    sql = "UPDATE job SET args = :args"  # so that the next try does not end at once
    args = '{"do": "wait", "seconds": 60, "mark": "a"}'
    await house.db.write(lambda c: c.execute(sql, {"args": args}).rowcount)
    again = (await house.decide(job["id"], "retry")).json
    assert (again["attempts"], again["error"], again["finished_ms"]) == (0, "never", None)
    job = await house.until(job["id"], "running")
    assert (job["attempts"], job["error"]) == (0, "never")


async def test_discard_lets_a_failed_job_be(open_house: Open) -> None:
    house, job = await job_in(open_house, State.FAILED)
    assert (await house.decide(job["id"], "discard")).json["state"] == "discarded"


@pytest.mark.parametrize("verb", DECISIONS)
async def test_nothing_can_be_decided_about_what_is_not_there(house: House, verb: Verb) -> None:
    for id_ in (7, 10**25):
        assert problem_of(await house.decide(id_, verb))["status"] == 404
