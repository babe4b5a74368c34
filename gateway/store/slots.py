"""Which slots of a schedule have had their job. Several processes may ask; one gets each slot."""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from gateway.store import queries

_sql = queries.load("schedule")

KEEP = 1000  # by the order in which they were taken: a clock that is years ahead must not prune


class Due(NamedTuple):
    """The newest slot of a schedule that is not after now. `rule`: what slots are reckoned by."""

    name: str
    rule: str
    slot_ms: int


def take(
    connection: sqlite3.Connection, due: Due, now_ms: int, enqueue: Callable[[], int]
) -> int | None:
    """Enqueue the job of a slot and return its id; None if that is done, or was before our time.

    Only the newest slot is ever asked for, so however many were missed, one run catches up. What
    counts is which slots were taken up to now, not the newest of all: a clock that was once years
    ahead silences nothing when it is put right.
    """
    told = {"name": due.name, "rule": due.rule, "now_ms": now_ms, "slot_ms": due.slot_ms}
    row = connection.execute(_sql.since, told).fetchone()
    if row is None:  # new, or reckoned otherwise than before, or the clock went back beyond it
        connection.execute(_sql.begin, told)
        return None
    if due.slot_ms <= row[0] or connection.execute(_sql.taken, told).fetchone():
        return None
    job_id = enqueue()
    connection.execute(_sql.take, told | {"job_id": job_id})
    connection.execute(_sql.prune, told | {"keep": KEEP})
    return job_id


def forget_others(connection: sqlite3.Connection, names: list[str]) -> None:
    """Forget the schedules that are not there any more: one that comes back later is a new one."""
    connection.execute(_sql.forget_others, {"names": msgspec.json.encode(names).decode()})
