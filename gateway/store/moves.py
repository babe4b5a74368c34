"""Reads of what happened to the jobs, in the order in which it was committed by whomever."""

from typing import NamedTuple

from gateway.states import State, Verb
from gateway.store import queries
from gateway.store.database import Database

MOST_AT_ONCE = 1000
_MOST_RUNNING = 200  # jobs whose progress is looked at

_sql = queries.load("tail")


class Move(NamedTuple):
    """A move that is committed.

    Attributes:
        verb: as in `states.Verb`, or `enqueue`; `renew` for a progress.
        kind: None if the job was pruned meanwhile.
        work_ms: since the job was claimed last.
    """

    job_id: int
    verb: str
    state: State
    kind: str | None
    work_ms: int | None = None


class Progress(NamedTuple):
    """How far a running job is."""

    kind: str
    percent: int
    stage: str | None


async def newest(db: Database) -> int:
    """Return the number of the newest move, 0 if there is none."""
    row = await db.one(_sql.newest)
    assert row is not None  # it aggregates
    return int(row["id"])


async def after(db: Database, number: int) -> tuple[int, list[Move]]:
    """Return up to MOST_AT_ONCE moves after that number, and the number of the last of them."""
    rows = await db.all(_sql.moves_after, {"after": number, "limit": MOST_AT_ONCE})
    moves = [
        Move(row["job_id"], row["verb"], State(row["state"]), row["kind"], row["work_ms"])
        for row in rows
    ]
    return (rows[-1]["id"] if rows else number), moves


async def progress(db: Database) -> dict[int, Progress]:
    """Return how far each running job is, by id."""
    rows = await db.all(_sql.progress, {"limit": _MOST_RUNNING})
    return {row["id"]: Progress(row["kind"], row["progress"], row["stage"]) for row in rows}


def renewed(job_id: int, progress: Progress) -> Move:
    """Return a progress as a move."""
    return Move(job_id, Verb.RENEW, State.RUNNING, progress.kind)
