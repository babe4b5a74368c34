"""The queue: every move of a job, each one statement whose WHERE names the state it leaves.

All run in the writer's thread, inside its transaction. A worker's moves carry the token of its
claim: a worker that lost its job changes nothing, and is told so.
"""

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from gateway import backoff
from gateway.outcomes import Crashed, Done, Dropped, Failed, Outcome, Released, Snoozed
from gateway.states import State, Verb
from gateway.store import effects, queries
from gateway.store.clock import Instant

_sql = queries.load("jobs")
_MAX_ERROR_BYTES = 4096

LEASE_MS = 15_000


@dataclass(frozen=True)
class Limits:
    """When a kind of job gives up: by attempts, by crashes, and by time since its first claim."""

    max_attempts: int = 5
    max_crashes: int = 2  # the third makes it failed
    deadline_ms: int = 10 * 60_000
    concurrency: int | None = None  # at most so many run at a time, in all processes


class Asked(NamedTuple):
    """A job as somebody asks for it. `args` is JSON; `run_at_ms` None: now."""

    kind: str
    args: str
    priority: int = 0
    run_at_ms: int | None = None
    request_id: str | None = None
    caller: str = ""
    idempotency_key: str | None = None
    fingerprint: bytes | None = None


class Claimed(NamedTuple):
    """A job in the hands of the worker that has its token."""

    id: int
    kind: str
    args: str
    token: str
    attempts: int
    crashes: int
    request_id: str | None


class Ended(NamedTuple):
    """What a worker hands in."""

    id: int
    token: str
    outcome: Outcome


class KeyUsed(Exception):
    """The idempotency key was used before, for something else."""


class NotAllowed(Exception):
    """The job is in a state (None: there is no such job) that does not have this move."""

    def __init__(self, state: State | None) -> None:
        super().__init__(state)
        self.state = state


@dataclass(frozen=True)
class Queue:
    """The moves, with the limits of each kind.

    Args:
        limits: by kind; a kind that is not there has the usual ones.
        random: for the jitter of the waits, in [0, 1).
        clock: looked at before anything is written that is to run now, so that a step of the wall
            clock that nobody has noticed yet does not move it away afterwards.
    """

    limits: Mapping[str, Limits] = field(default_factory=dict)
    random: Callable[[], float] = random.random
    clock: Callable[[], Instant] | None = None

    def enqueue(
        self, connection: sqlite3.Connection, asked: Asked, now_ms: int
    ) -> tuple[int, bool]:
        """Add a job; return its id, and False if its idempotency key had added it before.

        Raises:
            KeyUsed: that key was used for another kind, args, priority or run_at_ms.
        """
        now_ms = self._settled(connection, now_ms)
        is_now = asked.run_at_ms is None  # then it moves with the clock, as a wait of nothing
        run_at_ms = now_ms if asked.run_at_ms is None else asked.run_at_ms
        row = connection.execute(
            _sql.enqueue,
            (
                asked.kind, asked.args, asked.priority, run_at_ms, is_now, asked.request_id,
                asked.caller, asked.idempotency_key, asked.fingerprint, now_ms,
            ),
        ).fetchone()  # fmt: skip
        if row is not None:
            _note(connection, row[0], now_ms, "enqueue", State.PENDING)
            return row[0], True
        key = (asked.caller, asked.idempotency_key)
        id_, fingerprint = connection.execute(_sql.find_by_key, key).fetchone()
        if fingerprint != asked.fingerprint:
            raise KeyUsed(asked.idempotency_key)
        return id_, False

    def claim(
        self, connection: sqlite3.Connection, now: Instant, worker: str, kinds: frozenset[str]
    ) -> Claimed | None:
        """Take the next due job of these kinds, or None if there is none."""
        claimed = self.claim_several(connection, now, worker, kinds, 1)
        return claimed[0] if claimed else None

    def claim_several(
        self,
        connection: sqlite3.Connection,
        now: Instant,
        worker: str,
        kinds: frozenset[str],
        count: int,
    ) -> list[Claimed]:
        """Take up to `count` of the next due jobs of these kinds."""
        if not count:
            return []
        now.settle(connection)
        is_capped = any(self._limits(kind).concurrency is not None for kind in kinds)
        step = 1 if is_capped else count  # each claim of a capped kind may fill it
        claimed: list[Claimed] = []
        while len(claimed) < count:
            found = self._claim(connection, now, worker, kinds, step)
            claimed += found
            if len(found) < step:
                break
        return claimed

    def _claim(
        self,
        connection: sqlite3.Connection,
        now: Instant,
        worker: str,
        kinds: frozenset[str],
        count: int,
    ) -> list[Claimed]:
        open_kinds = sorted(kinds - self._full(connection, kinds))
        told = {
            "worker": worker,
            "now_ms": now.wall_ms,
            "lease_until_ms": now.wall_ms + LEASE_MS,
            "kinds": msgspec.json.encode(open_kinds).decode(),
            "count": count,
        }
        rows = connection.execute(_sql.claim, told).fetchall()
        claimed = [Claimed(*row) for row in sorted(rows)]
        _note_all(
            connection,
            [(one.id, now.wall_ms, Verb.CLAIM, State.RUNNING, worker, None) for one in claimed],
        )
        return claimed

    def renew(
        self,
        connection: sqlite3.Connection,
        now: Instant,
        id: int,
        token: str,
        progress: int | None = None,
        stage: str | None = None,
    ) -> bool | None:
        """Keep a lease; return whether a cancel was asked for, None if the job is lost."""
        now.settle(connection)
        told = {
            "id": id, "token": token, "progress": progress, "stage": stage,
            "lease_until_ms": now.wall_ms + LEASE_MS,
        }  # fmt: skip
        row = connection.execute(_sql.renew, told).fetchone()
        return None if row is None else bool(row[0])

    def end(self, connection: sqlite3.Connection, now: Instant, ended: Ended) -> bool:
        """Hand in a job; return False if the worker had lost it, and nothing was changed."""
        return ended.id in self.end_several(connection, now, [ended])

    def end_several(
        self, connection: sqlite3.Connection, now: Instant, several: Sequence[Ended]
    ) -> set[int]:
        """Hand in jobs; return the ids of those that their workers had not lost."""
        now.settle(connection)  # before a wait is written, not after
        done = [(one.id, one.token, one.outcome.result) for one in several
                if isinstance(one.outcome, Done)]  # fmt: skip
        kept = self._finish(connection, now.wall_ms, done) if done else set()
        for one in several:
            if not isinstance(one.outcome, Done) and self._end_badly(connection, now, one):
                kept.add(one.id)
        return kept

    def _finish(
        self, connection: sqlite3.Connection, now_ms: int, done: list[tuple[int, str, str | None]]
    ) -> set[int]:
        told = {"now_ms": now_ms, "ended": msgspec.json.encode(done).decode()}
        kept = {row[0] for row in connection.execute(_sql.finish, told)}
        _note_all(
            connection,
            [(id_, now_ms, Verb.FINISH, State.DONE, None, result)
             for id_, _, result in done if id_ in kept],
        )  # fmt: skip
        return kept

    def _end_badly(self, connection: sqlite3.Connection, now: Instant, ended: Ended) -> bool:
        held = connection.execute(_sql.held, (ended.id, ended.token)).fetchone()
        if held is None:
            return False
        attempts, crashes, since_ms, kind = held
        now_ms = now.wall_ms
        move = _Move(connection, ended.id, ended.token, now_ms, attempts, crashes)
        match ended.outcome:
            case Failed() as failed:
                attempts += 1
                move = move._replace(attempts=attempts)
                limits = self._limits(kind)
                late = now_ms - since_ms >= limits.deadline_ms
                if failed.permanent or late or attempts >= limits.max_attempts:
                    move.give_up(Verb.FAIL, failed.error)
                else:
                    wait_ms = failed.retry_after_ms
                    if wait_ms is None:
                        wait_ms = backoff.wait_ms(attempts + crashes, self.random)
                    move.try_later(Verb.FAIL, wait_ms, failed.error)
            case Snoozed(delay_ms):
                move.try_later(Verb.SNOOZE, delay_ms)
            case Released():
                move.try_later(Verb.RELEASE, 0)
            case Dropped():
                move.drop(Verb.DROP)
            case Crashed(error):
                self._crashed(move, kind, since_ms, error)
        return True

    def rescue(self, connection: sqlite3.Connection, now: Instant) -> list[int]:
        """Take back every job whose lease is over; return their ids."""
        now.settle(connection)
        rows = connection.execute(_sql.expired, (now.wall_ms,)).fetchall()
        for id_, kind, token, worker, attempts, crashes, cancelled, since_ms in rows:
            move = _Move(connection, id_, token, now.wall_ms, attempts, crashes)
            if cancelled:
                move.drop(Verb.RESCUE)
            else:
                self._crashed(move, kind, since_ms, f"the worker {worker} is gone")
        return [row[0] for row in rows]

    def _crashed(self, move: "_Move", kind: str, since_ms: int, error: str) -> None:
        move = move._replace(crashes=move.crashes + 1)
        limits = self._limits(kind)
        if move.crashes > limits.max_crashes or move.now_ms - since_ms >= limits.deadline_ms:
            move.give_up(Verb.RESCUE, error)
        else:
            wait_ms = backoff.wait_ms(move.attempts + move.crashes, self.random)
            move.try_later(Verb.RESCUE, wait_ms, error)

    def cancel(self, connection: sqlite3.Connection, id: int, now_ms: int) -> State:
        """Do not do a job: a pending one is discarded, a running one asked to stop.

        Raises:
            NotAllowed: it is over, or there is no such job.
        """
        told = {"id": id, "now_ms": now_ms}
        if connection.execute(_sql.cancel_pending, told).rowcount:
            _note(connection, id, now_ms, Verb.CANCEL, State.DISCARDED)
            return State.DISCARDED
        if connection.execute(_sql.cancel_running, told).rowcount:
            _note(connection, id, now_ms, Verb.CANCEL, State.RUNNING)
            return State.RUNNING
        raise NotAllowed(_state_of(connection, id))

    def retry(self, connection: sqlite3.Connection, id: int, now_ms: int) -> None:
        """Try a failed job again, as if for the first time. Raises NotAllowed."""
        self._decide(connection, _sql.retry, Verb.RETRY, State.PENDING, id, now_ms)
        effects.forget_unknown(connection, id)  # whoever tries again has looked

    def discard(self, connection: sqlite3.Connection, id: int, now_ms: int) -> None:
        """Let a failed job be. Raises NotAllowed."""
        self._decide(connection, _sql.discard, Verb.DISCARD, State.DISCARDED, id, now_ms)

    def _decide(
        self, connection: sqlite3.Connection, sql: str, verb: Verb, to: State, id: int, now_ms: int
    ) -> None:
        now_ms = self._settled(connection, now_ms)
        if not connection.execute(sql, {"id": id, "now_ms": now_ms}).rowcount:
            raise NotAllowed(_state_of(connection, id))
        _note(connection, id, now_ms, verb, to)

    def _settled(self, connection: sqlite3.Connection, now_ms: int) -> int:
        if self.clock is None:
            return now_ms
        now = self.clock()
        now.settle(connection)
        return now.wall_ms

    def _limits(self, kind: str) -> Limits:
        return self.limits.get(kind, Limits())

    def _full(self, connection: sqlite3.Connection, kinds: frozenset[str]) -> set[str]:
        """Return the kinds of which as many run as may."""
        capped = {k: most for k in kinds if (most := self._limits(k).concurrency) is not None}
        if not capped:
            return set()
        running = dict(connection.execute(_sql.running_by_kind).fetchall())
        return {kind for kind, most in capped.items() if running.get(kind, 0) >= most}


class _Move(NamedTuple):
    """A move of a running job by whoever has its token, with the counts it has after it."""

    connection: sqlite3.Connection
    id: int
    token: str
    now_ms: int
    attempts: int
    crashes: int

    def try_later(self, verb: Verb, wait_ms: int, error: str | None = None) -> None:
        error = error and _capped(error)
        run_at_ms = self.now_ms + wait_ms
        self._execute(_sql.try_later, error=error, run_at_ms=run_at_ms)
        self._note(verb, State.PENDING, f"{error or ''} (again in {wait_ms} ms)".strip())

    def give_up(self, verb: Verb, error: str) -> None:
        self._execute(_sql.give_up, error=_capped(error))
        self._note(verb, State.FAILED, _capped(error))

    def drop(self, verb: Verb) -> None:
        self._execute(_sql.drop)
        self._note(verb, State.DISCARDED)

    def _execute(self, sql: str, **values: object) -> None:
        told = self._asdict() | values
        del told["connection"]
        moved = self.connection.execute(sql, told).rowcount
        assert moved == 1, "the token was seen in this transaction"

    def _note(self, verb: Verb, state: State, detail: str | None = None) -> None:
        _note(self.connection, self.id, self.now_ms, verb, state, detail=detail)


def prune(
    connection: sqlite3.Connection, states: frozenset[State], before_ms: int, limit: int = 500
) -> int:
    """Delete up to `limit` jobs in these states that ended before `before_ms`; return how many."""
    told = {
        "before_ms": before_ms, "limit": limit,
        "states": msgspec.json.encode(sorted(states)).decode(),
    }  # fmt: skip
    return connection.execute(_sql.prune_jobs, told).rowcount


def prune_events(connection: sqlite3.Connection, before_ms: int, limit: int = 500) -> int:
    """Delete up to `limit` moves noted before `before_ms`; return how many."""
    return connection.execute(_sql.prune_events, {"before_ms": before_ms, "limit": limit}).rowcount


def _note(
    connection: sqlite3.Connection,
    id: int,
    at_ms: int,
    verb: str,
    state: State,
    worker: str | None = None,
    detail: str | None = None,
) -> None:
    _note_all(connection, [(id, at_ms, verb, state, worker, detail)])


def _note_all(connection: sqlite3.Connection, moves: list[tuple[object, ...]]) -> None:
    if moves:
        values = [value for move in moves for value in move]
        connection.execute(queries.for_rows(_sql.add_event, len(moves)), values)


def _state_of(connection: sqlite3.Connection, id: int) -> State | None:
    row = connection.execute(_sql.state_of, (id,)).fetchone()
    return None if row is None else State(row[0])


def _capped(error: str) -> str:
    return error.encode(errors="replace")[:_MAX_ERROR_BYTES].decode(errors="ignore")
