"""Readings counted by hour and by day, following their arrival by a cursor.

Cursor and counts move in one transaction, so whatever ends a step halfway takes both back: no
reading is counted twice, and none is passed over.
"""

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("aggregates")

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STEP_ROWS = 2000  # a few ms, for which those who deliver have to wait

_EVER_MS = 2**62
_ALL = {
    "rebuild": 0, "device_id": None, "from_ms": 0, "to_ms": _EVER_MS,
    "past_sensor_id": 0, "past_span_ms": 0, "past_from_ms": 0,
}  # fmt: skip

Calibration = Mapping[str, Mapping[str, Mapping[str, float]]]


def calibration_of(settings: Mapping[str, object]) -> str:
    """Return the `calibration` of the settings as the statements take it.

    It is `{device: {sensor: {"scale": 1.0, "offset": 0.0}}}`; either number may be missing.
    """
    given = msgspec.convert(
        settings.get("calibration") or {}, dict[str, dict[str, dict[str, float]]]
    )
    rows = [
        (device, sensor, float(numbers.get("scale", 1.0)), float(numbers.get("offset", 0.0)))
        for device, sensors in sorted(given.items())
        for sensor, numbers in sorted(sensors.items())
    ]
    return msgspec.json.encode(rows).decode()


async def has_news(database: Database) -> bool:
    """Return whether there are readings that were not counted."""
    row = await database.one(_sql.has_news)
    return row is not None and bool(row["has_news"])


async def cursor(database: Database) -> int:
    """Return up to which arrival readings are counted."""
    row = await database.one(_sql.cursor)
    assert row is not None
    arrival: int = row["arrival"]
    return arrival


def follow(connection: sqlite3.Connection, calibration: str, rows: int = STEP_ROWS) -> int:
    """Count the next readings; return how many arrivals there are behind them."""
    (counted,) = connection.execute(_sql.cursor).fetchone()
    step = next_step(connection, counted, _EVER_MS, rows)
    if step is None:
        return 0
    fold(connection, {**step._asdict(), "calibration": calibration})
    connection.execute(_sql.move_cursor, (step.upto,))
    waiting: int = connection.execute(_sql.newest).fetchone()[0] - step.upto
    return waiting


class Step(NamedTuple):
    """Arrivals (`after`, `upto`]."""

    after: int
    upto: int


def next_step(
    connection: sqlite3.Connection, after: int, newest: int, rows: int = STEP_ROWS
) -> Step | None:
    """Return the next step behind `after`, not beyond `newest`; None if there is no reading."""
    told = {"after": after, "newest": newest, "rows": rows}
    first, last = connection.execute(_sql.step, told).fetchone()
    return None if last is None else Step(first, last)


def fold(connection: sqlite3.Connection, told: Mapping[str, object]) -> None:
    """Let the readings of a step join the aggregates; `told` is the step, and may narrow it."""
    connection.execute(_sql.fold, {**_ALL, **told})
