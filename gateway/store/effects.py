"""What jobs do outside the database: the intention is written before, the result after."""

import sqlite3
from typing import NamedTuple

from gateway.store import queries

_sql = queries.load("effects")


class Intention(NamedTuple):
    """What is known of an effect.

    Attributes:
        is_new: nobody had intended it before.
        job_id: whose it is: another one's than asked only if it was done, or that one is at work.
    """

    is_new: bool
    done_at_ms: int | None
    result: str | None
    job_id: int


def intend(connection: sqlite3.Connection, key: str, job_id: int, now_ms: int) -> Intention:
    """Write down that it is about to be done, unless that was written before."""
    if connection.execute(_sql.intend, (key, job_id, now_ms)).rowcount:
        return Intention(True, None, None, job_id)
    connection.execute(_sql.take_over, {"key": key, "job_id": job_id})
    return Intention(False, *connection.execute(_sql.find, (key,)).fetchone())


def conclude(connection: sqlite3.Connection, key: str, result: str | None, now_ms: int) -> None:
    """Write down that it was done."""
    connection.execute(_sql.conclude, (now_ms, result, key))


def withdraw(connection: sqlite3.Connection, key: str) -> None:
    """Forget an intention: it was surely not done."""
    connection.execute(_sql.withdraw, (key,))


def forget_unknown(connection: sqlite3.Connection, job_id: int) -> None:
    """Forget what a job was the last to intend and nobody is known to have done."""
    connection.execute(_sql.forget_unknown, (job_id,))
