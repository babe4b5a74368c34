"""A worker is killed at each await of the pool, the reaper, the leases and the heavy jobs."""

import json
from collections import Counter

import pytest

from gateway.states import State, Verb, may
from tests.conftest import Program

pytestmark = pytest.mark.long

GIVE_UP_S = 120
MAY_HAVE_HAPPENED = "may have happened"  # killed within an effect: then a person has to look
ENDS = (Verb.FINISH, Verb.FAIL, Verb.RELEASE, Verb.RESCUE)


@pytest.fixture(scope="module")
def deaths(tmp_path_factory) -> list[dict]:
    """Return what became of the jobs after each death."""
    folder = tmp_path_factory.mktemp("deaths")
    program = Program("tests.system.fault_points", str(folder))
    try:
        code = program.process.wait(GIVE_UP_S)
        assert code == 0, program.err[-20:]
        program.end()
        return [json.loads(line) for line in program.out]
    finally:
        program.kill()


def moves_of(death, job_id):
    return [verb for job, verb, _state in death["moves"] if job == job_id]


def test_a_worker_dies_at_every_await_that_a_job_passes(deaths):
    died_at = {death["point"].split(":")[0] for death in deaths if death["died"]}
    assert died_at >= {
        "gateway.pool.Pool._turn",
        "gateway.pool.Pool._do_all",
        "gateway.pool.Pool._attempt",
        "gateway.pool._Try.outcome",
        "gateway.pool.Pool.stop",
        "gateway.lease.Keeper._renew",
        "gateway.reaper.Reaper.run_once",
        "gateway.child.run",
    }
    states = Counter(state for death in deaths for _, state, *_ in death["left"])
    assert all(states[state] for state in ("pending", "running", "done")), states


def test_no_death_loses_a_job_or_leaves_it_stuck(deaths):
    for death in deaths:
        for job_id, state, _attempts, crashes, error in death["jobs"]:
            unsure = state == "failed" and crashes and MAY_HAVE_HAPPENED in error
            assert state == "done" or unsure, (job_id, death)


def test_nothing_is_done_twice_and_no_try_is_begun_that_is_not_counted(deaths):
    for death in deaths:
        marks = Counter(tuple(mark) for mark in death["marks"])
        for job_id, state, attempts, crashes, _error in death["jobs"]:
            verbs = Counter(moves_of(death, job_id))
            assert verbs[Verb.RESCUE] == crashes, death
            assert verbs[Verb.CLAIM] == sum(verbs[verb] for verb in ENDS), death
            assert attempts == verbs[Verb.FINISH] + verbs[Verb.FAIL], death
            assert marks[job_id, "began"] <= verbs[Verb.CLAIM], death
            acted = marks[job_id, "acted"]
            assert acted == 1 or (acted == 0 and state == "failed"), death


def test_every_move_after_a_death_is_one_of_the_table(deaths):
    for death in deaths:
        for job_id, *_ in death["jobs"]:
            moves = [(verb, state) for job, verb, state in death["moves"] if job == job_id]
            before = State.PENDING
            for verb, state in moves[1:]:
                assert may(before, Verb(verb)), (verb, before, death)
                before = State(state)
