"""How far the import of a file got: moved in the transaction that stores what it brought."""

import sqlite3
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from gateway.store import queries
from gateway.store.database import Database

_LINES_AT_ONCE = 1000

_sql = queries.load("imports")


class Reached(NamedTuple):
    """What of a file is done with.

    Attributes:
        offset_bytes: of the first line that is still to be read.
        line: the number of the last one that was.
        first_at_ms, last_at_ms: between them is all that it brought.
    """

    offset_bytes: int = 0
    line: int = 1
    stored: int = 0
    duplicates: int = 0
    bad: int = 0
    first_at_ms: int | None = None
    last_at_ms: int | None = None
    finished: int = 0


class Fault(NamedTuple):
    """A line that is no reading."""

    line: int
    reason: str


def begin(connection: sqlite3.Connection, job_id: int) -> Reached:
    """Return how far this job got; forget those of jobs that are no more."""
    connection.execute(_sql.prune_bad_lines)
    connection.execute(_sql.prune)
    connection.execute(_sql.begin, (job_id,))
    return Reached(*connection.execute(_sql.find, (job_id,)).fetchone())


def advance(
    connection: sqlite3.Connection, job_id: int, reached: Reached, faults: list[Fault]
) -> None:
    connection.execute(_sql.advance, {"job_id": job_id, **reached._asdict()})
    if faults:
        lines = msgspec.json.encode(faults).decode()
        connection.execute(_sql.add_bad_lines, {"job_id": job_id, "lines": lines})


def version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection, of whatever process, has written."""
    number: int = connection.execute(_sql.version).fetchone()[0]
    return number


def finish(connection: sqlite3.Connection, job_id: int, reached: Reached) -> None:
    """Write down that the whole file is in, and its report written."""
    advance(connection, job_id, reached._replace(finished=1), [])
    connection.execute(_sql.forget_bad_lines, (job_id,))


async def faults(db: Database, job_id: int) -> AsyncIterator[list[Fault]]:
    """Yield all lines that were no readings, in order, in pieces."""
    after = 0
    while True:
        asked = {"job_id": job_id, "after": after, "limit": _LINES_AT_ONCE}
        found = [Fault(*row) for row in await db.all(_sql.bad_lines, asked)]
        if not found:
            return
        yield found
        after = found[-1].line
