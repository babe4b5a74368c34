"""The moves of a job that a worker has: each fenced by its token, and noted among its events."""

import sqlite3
from typing import NamedTuple

from gateway.states import State, Verb
from gateway.store import alarms, queries

_sql = queries.load("jobs")
_MAX_ERROR_BYTES = 4096


def note(
    connection: sqlite3.Connection,
    id: int,
    at_ms: int,
    verb: str,
    state: State,
    worker: str | None = None,
    detail: str | None = None,
) -> None:
    note_all(connection, [(id, at_ms, verb, state, worker, detail)])


def note_all(connection: sqlite3.Connection, moves: list[tuple[object, ...]]) -> None:
    if moves:
        values = [value for move in moves for value in move]
        connection.execute(queries.for_rows(_sql.add_event, len(moves)), values)


class Move(NamedTuple):
    """A move of a running job by whoever has its token, with the counts it has after it.

    Each makes it and returns the state that the job has then.
    """

    connection: sqlite3.Connection
    id: int
    token: str
    now_ms: int
    attempts: int
    crashes: int

    def try_later(self, verb: Verb, wait_ms: int, error: str | None = None) -> State:
        error = error and _capped(error)
        run_at_ms = self.now_ms + wait_ms
        self._execute(_sql.try_later, error=error, run_at_ms=run_at_ms)
        return self._note(verb, State.PENDING, f"{error or ''} (again in {wait_ms} ms)".strip())

    def give_up(self, verb: Verb, error: str) -> State:
        self._execute(_sql.give_up, error=_capped(error))
        alarms.job_failed(self.connection, self.id, self.now_ms)
        return self._note(verb, State.FAILED, _capped(error))

    def drop(self, verb: Verb) -> State:
        self._execute(_sql.drop)
        return self._note(verb, State.DISCARDED)

    def _execute(self, sql: str, **values: object) -> None:
        told = self._asdict() | values
        del told["connection"]
        moved = self.connection.execute(sql, told).rowcount
        assert moved == 1, "the token was seen in this transaction"

    def _note(self, verb: Verb, state: State, detail: str | None = None) -> State:
        note(self.connection, self.id, self.now_ms, verb, state, detail=detail)
        return state


def _capped(error: str) -> str:
    return error.encode(errors="replace")[:_MAX_ERROR_BYTES].decode(errors="ignore")
