"""The queue: every move of a job, each one statement whose WHERE names the state it leaves.

All run in the writer's thread, inside its transaction. A worker's moves carry the token of its
claim: a worker that lost its job changes nothing, and is told so.
"""

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gateway.states import State, Verb
from gateway.store import alarms, effects, queries
from gateway.store.clock import Instant
from gateway.store.job_ends import Endings
from gateway.store.job_moves import note, note_all
from gateway.store.job_terms import Asked, Claimed, Ended, KeyUsed, Limits, NotAllowed

__all__ = ["Asked", "Claimed", "Ended", "KeyUsed", "Limits", "NotAllowed", "Queue"]

_sql = queries.load("jobs")

LEASE_MS = 15_000


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
            note(connection, row[0], now_ms, "enqueue", State.PENDING)
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
        note_all(
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
    ) -> dict[int, State]:
        """Hand in jobs; return those that their workers had not lost, and the states they got."""
        now.settle(connection)  # before a wait is written, not after
        return Endings(self.limits, self.random).hand_in(connection, now, several)

    def rescue(self, connection: sqlite3.Connection, now: Instant) -> list[int]:
        """Take back every job whose lease is over; return their ids."""
        now.settle(connection)
        return Endings(self.limits, self.random).rescue(connection, now)

    def cancel(self, connection: sqlite3.Connection, id: int, now_ms: int) -> State:
        """Do not do a job: a pending one is discarded, a running one asked to stop.

        Raises:
            NotAllowed: it is over, or there is no such job.
        """
        told = {"id": id, "now_ms": now_ms}
        if connection.execute(_sql.cancel_pending, told).rowcount:
            note(connection, id, now_ms, Verb.CANCEL, State.DISCARDED)
            return State.DISCARDED
        if connection.execute(_sql.cancel_running, told).rowcount:
            note(connection, id, now_ms, Verb.CANCEL, State.RUNNING)
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
        alarms.job_is_no_more_failed(connection, now_ms)
        note(connection, id, now_ms, verb, to)

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


def prune(
    connection: sqlite3.Connection,
    states: frozenset[State],
    before_ms: int,
    limit: int = 500,
    now_ms: int | None = None,
) -> int:
    """Delete up to `limit` jobs in these states that ended before `before_ms`; return how many.

    Args:
        now_ms: when alarms of failed jobs close that are all gone with it; None: later, by others.
    """
    told = {
        "before_ms": before_ms, "limit": limit,
        "states": msgspec.json.encode(sorted(states)).decode(),
    }  # fmt: skip
    pruned = connection.execute(_sql.prune_jobs, told).rowcount
    if pruned and now_ms is not None and State.FAILED in states:
        alarms.job_is_no_more_failed(connection, now_ms)
    return pruned


def prune_events(connection: sqlite3.Connection, before_ms: int, limit: int = 500) -> int:
    """Delete up to `limit` moves noted before `before_ms`; return how many."""
    return connection.execute(_sql.prune_events, {"before_ms": before_ms, "limit": limit}).rowcount


def _state_of(connection: sqlite3.Connection, id: int) -> State | None:
    row = connection.execute(_sql.state_of, (id,)).fetchone()
    return None if row is None else State(row[0])
