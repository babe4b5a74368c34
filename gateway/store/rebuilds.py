"""Making the aggregates of a range anew beside the ones in use, then putting them in place.

All in bounded steps, each a transaction, while readings arrive and are counted as ever. What is
made anew never counts beyond the aggregator's cursor, and is put in place only when it has reached
it: so each aggregate holds, before and after, every reading up to the cursor once. A rebuild that
is interrupted goes on where it was.

Retention takes readings away in order of arrival. An aggregate that holds one from before the
first that is kept can not be made anew: it stays as it is.
"""

import sqlite3
from typing import NamedTuple

from gateway.store import aggregates, queries
from gateway.store.database import Database

_sql = queries.load("rebuilds")
_cursor = queries.load("aggregates").cursor

SCAN_ROWS = 50_000  # that one read looks at
PIECE_ROWS = 2000  # readings counted, aggregates put in place, or wiped, by one step
_END = (2**63 - 1, 0, 0)


class Range(NamedTuple):
    """Whose readings, None: all, and from which day to which: `from_ms` <= at_ms < `to_ms`."""

    device_id: int | None
    from_ms: int
    to_ms: int


class _Rebuild(NamedTuple):
    job_id: int
    device_id: int | None
    from_ms: int
    to_ms: int
    calibration: str
    reached: int
    past_sensor_id: int
    past_span_ms: int
    past_from_ms: int


async def find_device(database: Database, name: str) -> int | None:
    """Return the key of a device; None if there is none of that name."""
    row = await database.one(_sql.find_device, (name,))
    return None if row is None else row["id"]


class Days(NamedTuple):
    """Days of sensors in a range; of the `unwhole` ones not all readings are kept."""

    total: int
    unwhole: int


async def days_of(database: Database, wanted: Range) -> Days:
    """Count the days of sensors that there are in the range."""
    pruned = await database.one(_sql.pruned_to)
    assert pruned is not None
    row = await database.one(_sql.days_of_range, {**wanted._asdict(), "pruned_to": pruned[0]})
    assert row is not None
    return Days(row["total"], row["unwhole"])


async def next_of_range(
    database: Database, wanted: Range, after: int, newest: int
) -> tuple[int | None, int]:
    """Return the next arrival in the range, None if this read met none; and how far it looked."""
    if after == 0:
        first = await database.one(_sql.first_arrival)
        assert first is not None
        after = max(0, first["id"] - 1)
    told = {**wanted._asdict(), "after": after, "newest": newest, "scan": SCAN_ROWS}
    row = await database.one(_sql.next_of_range, told)
    assert row is not None
    return row["id"], min(row["seen"], newest)


def clear(connection: sqlite3.Connection, job_id: int, rows: int = PIECE_ROWS) -> bool:
    """Remove a piece of what other rebuilds left that nobody will end; return if there was any."""
    row = connection.execute(_sql.abandoned, (job_id,)).fetchone()
    return row is not None and _wipe(connection, row[0], rows)


def begin(
    connection: sqlite3.Connection, job_id: int, wanted: Range, calibration: str,
    rows: int = PIECE_ROWS,
) -> bool:  # fmt: skip
    """Begin a rebuild, or find it begun; False: call again, another's calibration is in the way."""
    found = _find(connection, job_id)
    if found is None:
        connection.execute(_sql.begin, (job_id, *wanted, calibration))
        return True
    if found[1:5] == (*wanted, calibration):
        return True
    _wipe(connection, job_id, rows)
    return False


def reached(connection: sqlite3.Connection, job_id: int) -> int:
    """Return up to which arrival a rebuild has counted."""
    return _known(connection, job_id).reached


def count(
    connection: sqlite3.Connection, job_id: int, none_before: int, rows: int = aggregates.STEP_ROWS
) -> int:
    """Count the next readings, never beyond the cursor; return the arrival that it reached.

    Args:
        none_before: up to here there is no reading of the range that was not counted.
    """
    connection.execute(_sql.reach, (none_before, job_id))
    rebuild = _known(connection, job_id)
    (newest,) = connection.execute(_cursor).fetchone()
    step = aggregates.next_step(connection, rebuild.reached, newest, rows)
    if step is None:
        return rebuild.reached
    told = {**rebuild._asdict(), **step._asdict(), "rebuild": job_id}
    aggregates.fold(connection, told)
    connection.execute(_sql.reach, (step.upto, job_id))
    return step.upto


def put_in_place(
    connection: sqlite3.Connection, job_id: int, none_before: int, rows: int = PIECE_ROWS
) -> bool:
    """Put a piece of what was made anew in place; return whether that was the last.

    What has arrived meanwhile is counted first; if that is a whole step, only that is done.
    """
    count(connection, job_id, none_before, rows)
    rebuild = _known(connection, job_id)
    (newest,) = connection.execute(_cursor).fetchone()
    if aggregates.next_step(connection, rebuild.reached, newest, 1) is not None:
        return False
    told = {**rebuild._asdict(), "rows": rows}
    found = connection.execute(_sql.piece_end, told).fetchone()
    end = found or _END
    ends = dict(zip(("end_sensor_id", "end_span_ms", "end_from_ms"), end, strict=True))
    (told["pruned_to"],) = connection.execute(_sql.pruned_to).fetchone()
    connection.execute(_sql.drop_unwhole, told | ends)
    connection.execute(_sql.remove_old, told | ends)
    connection.execute(_sql.put_in_place, told | ends)
    if found is None:
        connection.execute(_sql.end, (job_id,))
        return True
    connection.execute(_sql.go_past, (*end, job_id))
    return False


def _wipe(connection: sqlite3.Connection, job_id: int, rows: int) -> bool:
    removed = connection.execute(_sql.wipe, {"job_id": job_id, "rows": rows}).rowcount
    if removed < rows:
        connection.execute(_sql.end, (job_id,))
    return True


def _find(connection: sqlite3.Connection, job_id: int) -> _Rebuild | None:
    row = connection.execute(_sql.find, (job_id,)).fetchone()
    return None if row is None else _Rebuild(*row)


def _known(connection: sqlite3.Connection, job_id: int) -> _Rebuild:
    rebuild = _find(connection, job_id)
    assert rebuild is not None, "it was begun, and ends with its last piece"
    return rebuild
