"""The queue against its oracle: every verb in every state does what `states.MOVES` says."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.outcomes import Done, Dropped, Failed, Outcome, Released, Snoozed
from gateway.states import FINAL, MOVES, State, Verb, may
from gateway.store.clock import Instant
from gateway.store.database import connect
from gateway.store.jobs import (
    LEASE_MS,
    Asked,
    Claimed,
    Ended,
    KeyUsed,
    Limits,
    NotAllowed,
    Queue,
    prune,
    prune_events,
)

KINDS = frozenset({"report"})
WORKER = "w1"


class Bench:
    """A queue on a database of its own, and a clock that is moved by hand."""

    def __init__(self, connection: sqlite3.Connection, **limits: Any) -> None:
        self.connection = connection
        self.queue = Queue({"report": Limits(**limits)}, random=lambda: 0.5)
        self.now_ms = 1_764_529_200_000
        self.offset_ms = 0

    @property
    def now(self) -> Instant:
        return Instant(self.now_ms, self.offset_ms, "boot")

    def enqueue(self, **asked: Any) -> int:
        return self.queue.enqueue(self.connection, Asked("report", "{}", **asked), self.now_ms)[0]

    def claim(self) -> Claimed | None:
        return self.queue.claim(self.connection, self.now, WORKER, KINDS)

    def claimed(self) -> Claimed:
        claimed = self.claim()
        assert claimed is not None
        return claimed

    def end(self, job: Claimed, outcome: Outcome) -> bool:
        return self.queue.end(self.connection, self.now, Ended(job.id, job.token, outcome))

    def rescue(self) -> list[int]:
        return self.queue.rescue(self.connection, self.now)

    def row(self, id_: int) -> dict[str, Any]:
        cursor = self.connection.execute("SELECT * FROM job WHERE id = ?", (id_,))
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))

    def moves(self, id_: int) -> list[tuple[str, str]]:
        sql = "SELECT verb, state FROM job_event WHERE job_id = ? ORDER BY id"
        return [(verb, state) for verb, state in self.connection.execute(sql, (id_,))]

    def put_into(self, state: State) -> tuple[int, str]:
        """Return (id, token) of a new job in that state; the token is void unless it runs."""
        id_ = self.enqueue()
        if state is State.PENDING:
            return id_, "none"
        job = self.claimed()
        if state is State.DONE:
            self.end(job, Done())
        elif state is not State.RUNNING:
            self.end(job, Failed("no", permanent=True))
            if state is State.DISCARDED:
                self.queue.discard(self.connection, id_, self.now_ms)
        return id_, job.token


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    connection = connect(str(tmp_path / "fieldpost.db"))
    yield lambda **limits: Bench(connection, **limits)
    connection.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


def do(bench: Bench, verb: Verb, id_: int, token: str) -> bool:
    """Try a verb on a job; return whether it did anything."""
    queue, connection = bench.queue, bench.connection
    if verb is Verb.CLAIM:
        return bench.claim() is not None
    if verb is Verb.RENEW:
        return queue.renew(connection, bench.now, id_, token) is not None
    if verb is Verb.RESCUE:
        bench.now_ms += LEASE_MS
        return bench.rescue() == [id_]
    if verb in (Verb.CANCEL, Verb.RETRY, Verb.DISCARD):
        try:
            getattr(queue, verb)(connection, id_, bench.now_ms)
        except NotAllowed:
            return False
        return True
    outcomes: dict[Verb, Outcome] = {
        Verb.FINISH: Done(), Verb.FAIL: Failed("no"), Verb.SNOOZE: Snoozed(1000),
        Verb.RELEASE: Released(), Verb.DROP: Dropped(),
    }  # fmt: skip
    return queue.end(connection, bench.now, Ended(id_, token, outcomes[verb]))


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("verb", Verb)
def test_every_verb_in_every_state_does_what_the_table_says(
    bench: Bench, state: State, verb: Verb
) -> None:
    id_, token = bench.put_into(state)
    before, moves = bench.row(id_), bench.moves(id_)
    assert do(bench, verb, id_, token) == may(state, verb)
    after = bench.row(id_)
    if may(state, verb):
        assert after["state"] in MOVES[state][verb]
        noted = [] if verb is Verb.RENEW else [(verb, after["state"])]
        assert bench.moves(id_) == moves + noted
    else:
        assert after == before
        assert bench.moves(id_) == moves


@pytest.mark.parametrize(
    "verb", [Verb.RENEW, Verb.FINISH, Verb.FAIL, Verb.SNOOZE, Verb.RELEASE, Verb.DROP]
)
def test_a_worker_that_lost_its_token_changes_nothing(bench: Bench, verb: Verb) -> None:
    id_ = bench.enqueue()
    lost = bench.claimed()
    bench.now_ms += LEASE_MS
    bench.rescue()
    bench.now_ms += 10_000
    assert bench.claimed().id == id_
    before = bench.row(id_)
    assert not do(bench, verb, id_, lost.token)
    assert bench.row(id_) == before


def test_a_decision_that_is_not_allowed_says_in_which_state_the_job_is(bench: Bench) -> None:
    id_, _ = bench.put_into(State.DONE)
    for act in (bench.queue.cancel, bench.queue.retry, bench.queue.discard):
        with pytest.raises(NotAllowed) as refused:
            act(bench.connection, id_, bench.now_ms)
        assert refused.value.state is State.DONE
    with pytest.raises(NotAllowed) as refused:
        bench.queue.retry(bench.connection, 999, bench.now_ms)
    assert refused.value.state is None


def test_claim_takes_higher_priority_then_earlier_then_older(bench: Bench) -> None:
    late = bench.enqueue(run_at_ms=900)
    first = bench.enqueue(run_at_ms=800)
    second = bench.enqueue(run_at_ms=800)
    urgent = bench.enqueue(priority=1)
    assert [bench.claimed().id for _ in range(4)] == [urgent, first, second, late]


def test_claim_skips_jobs_not_yet_due(bench: Bench) -> None:
    id_ = bench.enqueue(run_at_ms=bench.now_ms + 1)
    assert bench.claim() is None
    bench.now_ms += 1
    assert bench.claimed().id == id_


def test_claim_skips_kinds_that_this_worker_does_not_know(bench: Bench) -> None:
    bench.queue.enqueue(bench.connection, Asked("other", "{}"), bench.now_ms)
    assert bench.claim() is None


def test_claim_keeps_to_the_concurrency_of_a_kind(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(concurrency=2)
    for _ in range(3):
        bench.enqueue()
    first = bench.claimed()
    bench.claimed()
    assert bench.claim() is None
    bench.end(first, Done())
    assert bench.claim() is not None


def test_a_done_job_says_all_of_it(bench: Bench) -> None:
    id_ = bench.enqueue(request_id="r1")
    job = bench.claimed()
    bench.now_ms += 7
    bench.end(job, Done("/v1/results/1"))
    row = bench.row(id_)
    assert (row["attempts"], row["crashes"], row["progress"], row["error"]) == (1, 0, 100, None)
    assert (row["result"], row["finished_at_ms"]) == ("/v1/results/1", bench.now_ms)
    assert bench.moves(id_) == [
        ("enqueue", "pending"), ("claim", "running"), ("finish", "done"),
    ]  # fmt: skip


def test_the_waits_follow_the_table_and_the_fifth_failure_is_the_last(bench: Bench) -> None:
    id_ = bench.enqueue()
    waits = []
    while bench.row(id_)["state"] == State.PENDING:
        job = bench.claimed()
        bench.end(job, Failed(f"failure {job.attempts + 1}"))
        row = bench.row(id_)
        waits.append(row["run_at_ms"] - bench.now_ms)
        bench.now_ms = max(bench.now_ms, row["run_at_ms"])
    assert waits[:4] == [3000, 6000, 12000, 24000]  # with a random of a half
    row = bench.row(id_)
    assert (row["state"], row["attempts"], row["error"]) == (State.FAILED, 5, "failure 5")


def test_a_deadline_ends_a_job_that_fails_and_never_a_first_try(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(deadline_ms=60_000, max_attempts=100)
    id_ = bench.enqueue()
    bench.now_ms += 3 * 24 * 3600 * 1000  # a weekend without workers
    job = bench.claimed()
    bench.now_ms += 59_999
    bench.end(job, Failed("slow"))
    assert bench.row(id_)["state"] == State.PENDING
    bench.now_ms += 10_000
    bench.end(bench.claimed(), Failed("too late"))
    assert (bench.row(id_)["state"], bench.row(id_)["attempts"]) == (State.FAILED, 2)


def test_a_permanent_failure_is_the_last(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.end(bench.claimed(), Failed("no such device", permanent=True))
    row = bench.row(id_)
    assert (row["state"], row["attempts"], row["error"]) == (State.FAILED, 1, "no such device")


def test_a_called_service_says_when_to_come_back(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.end(bench.claimed(), Failed("429", retry_after_ms=77_000))
    assert bench.row(id_)["run_at_ms"] == bench.now_ms + 77_000


def test_an_error_is_capped_at_4_kib(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.end(bench.claimed(), Failed("ü" * 10_000))
    assert bench.row(id_)["error"] == "ü" * 2048


def test_released_and_snoozed_tries_are_not_counted(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.end(bench.claimed(), Released())
    bench.end(bench.claimed(), Snoozed(5000))
    assert bench.claim() is None
    bench.now_ms += 5000
    assert bench.claimed().id == id_
    assert (bench.row(id_)["attempts"], bench.row(id_)["crashes"]) == (0, 0)


def test_the_third_crash_makes_a_job_failed(bench: Bench) -> None:
    id_ = bench.enqueue()
    states = []
    for _ in range(3):
        bench.claimed()
        bench.now_ms += LEASE_MS
        assert bench.rescue() == [id_]
        row = bench.row(id_)
        states.append((row["state"], row["attempts"], row["crashes"]))
        bench.now_ms += 64_000
    assert states == [("pending", 0, 1), ("pending", 0, 2), ("failed", 0, 3)]


def test_a_rescue_waits_as_after_a_failure(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.claimed()
    bench.now_ms += LEASE_MS
    bench.rescue()
    assert bench.row(id_)["run_at_ms"] == bench.now_ms + 3000


def test_rescue_takes_expired_leases_only(bench: Bench) -> None:
    bench.enqueue()
    job = bench.claimed()
    bench.now_ms += LEASE_MS - 1
    assert bench.rescue() == []
    bench.queue.renew(bench.connection, bench.now, job.id, job.token)
    bench.now_ms += LEASE_MS - 1
    assert bench.rescue() == []


def test_a_cancelled_job_whose_worker_died_is_discarded(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.claimed()
    bench.queue.cancel(bench.connection, id_, bench.now_ms)
    bench.now_ms += LEASE_MS
    bench.rescue()
    assert bench.row(id_)["state"] == State.DISCARDED


def test_a_cancel_is_seen_at_the_renewal_and_a_job_that_finishes_first_is_done(
    bench: Bench,
) -> None:
    id_ = bench.enqueue()
    job = bench.claimed()
    assert bench.queue.renew(bench.connection, bench.now, job.id, job.token) is False
    assert bench.queue.cancel(bench.connection, id_, bench.now_ms) is State.RUNNING
    assert bench.queue.renew(bench.connection, bench.now, job.id, job.token) is True
    bench.end(job, Done())
    assert bench.row(id_)["state"] == State.DONE


def test_progress_rides_on_the_renewal(bench: Bench) -> None:
    id_ = bench.enqueue()
    job = bench.claimed()
    bench.queue.renew(bench.connection, bench.now, job.id, job.token, 40, "counting")
    bench.queue.renew(bench.connection, bench.now, job.id, job.token)
    assert (bench.row(id_)["progress"], bench.row(id_)["stage"]) == (40, "counting")


def test_retry_begins_anew_and_keeps_the_error_until_the_next_end(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.end(bench.claimed(), Failed("no", permanent=True))
    bench.now_ms += 3_600_000
    bench.queue.retry(bench.connection, id_, bench.now_ms)
    row = bench.row(id_)
    assert (row["state"], row["attempts"], row["error"]) == (State.PENDING, 0, "no")
    assert (row["deadline_from_ms"], row["finished_at_ms"]) == (None, None)
    bench.end(bench.claimed(), Done())
    assert bench.row(id_)["error"] is None


def test_the_same_key_gives_the_same_job_and_another_body_is_refused(bench: Bench) -> None:
    asked = Asked("report", "{}", caller="a", idempotency_key="k", fingerprint=b"1")
    id_, added = bench.queue.enqueue(bench.connection, asked, bench.now_ms)
    assert added
    assert bench.queue.enqueue(bench.connection, asked, bench.now_ms) == (id_, False)
    with pytest.raises(KeyUsed):
        bench.queue.enqueue(bench.connection, asked._replace(fingerprint=b"2"), bench.now_ms)
    other = asked._replace(caller="b", fingerprint=b"2")
    assert bench.queue.enqueue(bench.connection, other, bench.now_ms)[1]


def test_a_discarded_job_frees_its_key(bench: Bench) -> None:
    asked = Asked("report", "{}", caller="a", idempotency_key="k", fingerprint=b"1")
    id_, _ = bench.queue.enqueue(bench.connection, asked, bench.now_ms)
    bench.queue.cancel(bench.connection, id_, bench.now_ms)
    again, added = bench.queue.enqueue(
        bench.connection, asked._replace(fingerprint=b"2"), bench.now_ms
    )
    assert added
    assert again != id_


@pytest.mark.parametrize("step_ms", [-7_200_000, 7_200_000, 20 * 365 * 86_400_000])
def test_leases_and_waits_move_with_the_wall_clock_once(bench: Bench, step_ms: int) -> None:
    running = bench.enqueue()
    bench.claimed()
    waiting = bench.enqueue()
    bench.end(bench.claimed(), Failed("later"))
    asked_for = bench.enqueue(run_at_ms=bench.now_ms + 50_000_000_000_000)
    due = bench.enqueue()
    before = {id_: bench.row(id_) for id_ in (running, waiting, asked_for)}
    bench.now_ms += step_ms
    bench.offset_ms += step_ms
    for _ in range(2):  # the second to notice finds it done
        assert bench.rescue() == []
    assert bench.claimed().id == due  # a clock that went back does not make it wait
    assert bench.claim() is None
    moved = bench.row(running)["lease_until_ms"] - before[running]["lease_until_ms"]
    assert moved == step_ms
    assert bench.row(waiting)["run_at_ms"] - before[waiting]["run_at_ms"] == step_ms
    assert bench.row(asked_for)["run_at_ms"] == before[asked_for]["run_at_ms"]
    bench.now_ms += LEASE_MS
    assert bench.rescue() == [running, due]


@pytest.mark.parametrize("step_ms", [-7_200_000, 7_200_000])
def test_what_is_written_before_anybody_noticed_a_step_is_not_moved_by_it(
    bench: Bench, step_ms: int
) -> None:
    bench.queue = Queue(bench.queue.limits, random=lambda: 0.5, clock=lambda: bench.now)
    bench.enqueue()
    failing = bench.claimed()
    bench.now_ms += step_ms
    bench.offset_ms += step_ms
    asked_for = bench.enqueue()
    bench.end(failing, Failed("later"))
    assert bench.rescue() == []
    assert bench.row(asked_for)["run_at_ms"] == bench.now_ms
    assert bench.row(failing.id)["run_at_ms"] == bench.now_ms + 3000


def test_a_failure_that_is_handed_in_first_after_a_step_waits_as_long_as_ever(
    bench: Bench,
) -> None:
    bench.enqueue()
    failing = bench.claimed()
    bench.now_ms += 7_200_000
    bench.offset_ms += 7_200_000
    bench.end(failing, Failed("later"))
    bench.rescue()
    assert bench.row(failing.id)["run_at_ms"] == bench.now_ms + 3000


def test_after_a_restart_of_the_machine_every_lease_is_over(bench: Bench) -> None:
    id_ = bench.enqueue()
    bench.claimed()
    anew = Instant(bench.now_ms - 3_600_000, -5_000_000, "another boot")
    assert bench.queue.rescue(bench.connection, anew) == [id_]


def test_prune_takes_what_ended_long_ago_and_in_bounded_steps(bench: Bench) -> None:
    for _ in range(3):
        bench.put_into(State.DONE)
    kept = [bench.put_into(state)[0] for state in (State.FAILED, State.RUNNING, State.PENDING)]
    later = bench.now_ms + 1
    done = frozenset({State.DONE, State.DISCARDED})
    assert prune(bench.connection, done, later, limit=2) == 2
    assert prune(bench.connection, done, later, limit=2) == 1
    left = [row[0] for row in bench.connection.execute("SELECT id FROM job ORDER BY id")]
    assert left == kept
    assert prune_events(bench.connection, later, limit=1000) > 0


def test_the_id_of_a_pruned_job_never_comes_again(bench: Bench) -> None:
    id_, _ = bench.put_into(State.DONE)
    prune(bench.connection, frozenset({State.DONE}), bench.now_ms + 1)
    assert bench.enqueue() > id_


def test_claim_and_rescue_read_their_indexes(bench: Bench) -> None:
    from gateway.store import queries

    sql = queries.load("jobs")
    for statement, index, values in (
        (sql.claim, "jobs_for_claim", {
            "worker": "", "now_ms": 0, "lease_until_ms": 0, "kinds": "[]", "count": 4,
        }),
        (sql.expired, "jobs_for_rescue", (0,)),
        (sql.prune_jobs, "jobs_for_prune", {"before_ms": 0, "limit": 1, "states": "[]"}),
    ):  # fmt: skip
        plan = bench.connection.execute("EXPLAIN QUERY PLAN " + statement, values).fetchall()
        assert any(index in row[3] for row in plan), plan


@given(st.lists(st.tuples(st.sampled_from(list(Verb)), st.integers(0, 2)), max_size=30))
def test_any_sequence_of_verbs_follows_the_table(steps: list[tuple[Verb, int]]) -> None:
    connection = connect_in_memory()
    bench = Bench(connection)
    ids = [bench.enqueue() for _ in range(3)]
    tokens = dict.fromkeys(ids, "none")
    for verb, which in steps:
        before = {id_: State(bench.row(id_)["state"]) for id_ in ids}
        if verb is Verb.CLAIM:
            bench.now_ms += 100_000
            bench.offset_ms += 0
            job = bench.claim()
            if job is not None:
                tokens[job.id] = job.token
        elif verb is Verb.RESCUE:
            bench.now_ms += LEASE_MS
            bench.rescue()
        else:
            do(bench, verb, ids[which], tokens[ids[which]])
        for id_ in ids:
            state = State(bench.row(id_)["state"])
            allowed = {s for targets in MOVES[before[id_]].values() for s in targets}
            assert state == before[id_] or state in allowed
            assert (bench.row(id_)["finished_at_ms"] is not None) == (state in FINAL)
    connection.close()


def connect_in_memory() -> sqlite3.Connection:
    from gateway.store.migrate import migrate

    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    return connection


def test_args_come_back_as_they_were_given(bench: Bench) -> None:
    asked = Asked("report", json.dumps({"date": "2026-11-30"}), request_id="r")
    bench.queue.enqueue(bench.connection, asked, bench.now_ms)
    job = bench.claimed()
    assert (json.loads(job.args), job.request_id) == ({"date": "2026-11-30"}, "r")
