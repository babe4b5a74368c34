"""How a try ends: done, badly, given back, or with its worker gone; and what becomes of the job."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gateway import backoff
from gateway.outcomes import Crashed, Done, Dropped, Failed, Released, Snoozed
from gateway.states import State, Verb
from gateway.store import queries
from gateway.store.clock import Instant
from gateway.store.job_moves import Move, note_all
from gateway.store.job_terms import Ended, Limits

_sql = queries.load("jobs")


@dataclass(frozen=True)
class Endings:
    """What becomes of jobs, by the limits of each kind. `random`: for the jitter of the waits."""

    limits: Mapping[str, Limits]
    random: Callable[[], float]

    def hand_in(
        self, connection: sqlite3.Connection, now: Instant, several: Sequence[Ended]
    ) -> dict[int, State]:
        """Hand in jobs; return those that their workers had not lost, and the states they got."""
        done = [(one.id, one.token, one.outcome.result) for one in several
                if isinstance(one.outcome, Done)]  # fmt: skip
        finished = self._finish(connection, now.wall_ms, done) if done else set()
        kept = dict.fromkeys(finished, State.DONE)
        for one in several:
            if not isinstance(one.outcome, Done):
                state = self._end_badly(connection, now, one)
                if state is not None:
                    kept[one.id] = state
        return kept

    def _finish(
        self, connection: sqlite3.Connection, now_ms: int, done: list[tuple[int, str, str | None]]
    ) -> set[int]:
        told = {"now_ms": now_ms, "ended": msgspec.json.encode(done).decode()}
        kept = {row[0] for row in connection.execute(_sql.finish, told)}
        note_all(
            connection,
            [(id_, now_ms, Verb.FINISH, State.DONE, None, result)
             for id_, _, result in done if id_ in kept],
        )  # fmt: skip
        return kept

    def _end_badly(
        self, connection: sqlite3.Connection, now: Instant, ended: Ended
    ) -> State | None:
        held = connection.execute(_sql.held, (ended.id, ended.token)).fetchone()
        if held is None:
            return None
        attempts, crashes, since_ms, kind = held
        now_ms = now.wall_ms
        move = Move(connection, ended.id, ended.token, now_ms, attempts, crashes)
        match ended.outcome:
            case Failed() as failed:
                attempts += 1
                move = move._replace(attempts=attempts)
                limits = self.limits.get(kind, Limits())
                late = now_ms - since_ms >= limits.deadline_ms
                if failed.permanent or late or attempts >= limits.max_attempts:
                    return move.give_up(Verb.FAIL, failed.error)
                wait_ms = failed.retry_after_ms
                if wait_ms is None:
                    wait_ms = backoff.wait_ms(attempts + crashes, self.random)
                return move.try_later(Verb.FAIL, wait_ms, failed.error)
            case Snoozed(delay_ms, why):
                return move.try_later(Verb.SNOOZE, delay_ms, why)
            case Released():
                return move.try_later(Verb.RELEASE, 0)
            case Dropped():
                return move.drop(Verb.DROP)
            case Crashed(error):
                return self._crashed(move, kind, since_ms, error)
            case Done():
                raise AssertionError("those are finished together")

    def rescue(self, connection: sqlite3.Connection, now: Instant) -> list[int]:
        """Take back every job whose lease is over; return their ids."""
        rows = connection.execute(_sql.expired, (now.wall_ms,)).fetchall()
        for id_, kind, token, worker, attempts, crashes, cancelled, since_ms in rows:
            move = Move(connection, id_, token, now.wall_ms, attempts, crashes)
            if cancelled:
                move.drop(Verb.RESCUE)
            else:
                self._crashed(move, kind, since_ms, f"the worker {worker} is gone")
        return [row[0] for row in rows]

    def _crashed(self, move: Move, kind: str, since_ms: int, error: str) -> State:
        move = move._replace(crashes=move.crashes + 1)
        limits = self.limits.get(kind, Limits())
        if move.crashes > limits.max_crashes or move.now_ms - since_ms >= limits.deadline_ms:
            return move.give_up(Verb.RESCUE, error)
        wait_ms = backoff.wait_ms(move.attempts + move.crashes, self.random)
        return move.try_later(Verb.RESCUE, wait_ms, error)
