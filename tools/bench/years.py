"""Makes a database such as years leave behind: by bulk SQL, with the schema and indexes as it has.

Readings of all devices in turn over a month, their aggregates, a gap here and there, a few rows in
quarantine; finished jobs of a week with their moves, some failed.
"""

import sqlite3
import time
from contextlib import closing
from typing import NamedTuple

from gateway.store import aggregates
from gateway.store.database import connect

DAY_MS = aggregates.DAY_MS
_CHUNK = 100_000
_FOLD_ROWS = 50_000

_NUMBERS = """
WITH RECURSIVE numbers (i) AS (
    SELECT :first UNION ALL SELECT i + 1 FROM numbers WHERE i < :last
)
"""
_DEVICES = f"""{_NUMBERS}
INSERT INTO device (id, name, added_at_ms, last_seen_at_ms, boot, seq, health, stored)
SELECT
    i, printf('bench-%04d', i), :from_ms, :to_ms, 'be9c00001', 1,
    '{{"period_ms":10000,"firmware":"1.0.0","heap_free":81234,"rssi":-61,"outbox":0}}',
    :readings / :devices
FROM numbers"""
_SENSORS = f"""{_NUMBERS}
INSERT INTO sensor (id, device_id, name) SELECT i, i, 'dht22.temperature' FROM numbers"""
_BOOTS = f"""{_NUMBERS}
INSERT INTO boot (id, device_id, name, highest, first_seen_at_ms)
SELECT i, i, 'be9c00001', :readings / :devices + 1000, :from_ms FROM numbers"""
_GAPS = f"""{_NUMBERS}
INSERT INTO gap (boot_id, first, last, opened_at_ms)
SELECT i, :readings / :devices + 10, :readings / :devices + 12, :to_ms FROM numbers
WHERE i % 20 = 0"""
_READINGS = f"""{_NUMBERS}
INSERT INTO reading (
    reading_id, device_id, sensor_id, value, unit, boot_id, n, at_ms, clock, received_at_ms
)
SELECT
    printf('bench-%04d-be9c00001-%d', i % :devices + 1, i / :devices + 1),
    i % :devices + 1, i % :devices + 1, 20.0 + i % 7, 'Cel', i % :devices + 1, i / :devices + 1,
    :from_ms + (:to_ms - :from_ms) * i / :readings, 'synced',
    :from_ms + (:to_ms - :from_ms) * i / :readings
FROM numbers"""
_QUARANTINE = f"""{_NUMBERS}
INSERT INTO quarantine (digest, reading_id, device, reason, body, received_at_ms)
SELECT
    CAST(printf('%016d', i) AS BLOB), NULL, printf('bench-%04d', i % :devices + 1),
    'value is not a finite number', '{{}}', :to_ms
FROM numbers"""
_JOBS = f"""{_NUMBERS}
INSERT INTO job (
    kind, args, state, run_at_ms, attempts, progress, error, created_at_ms, deadline_from_ms,
    started_at_ms, finished_at_ms
)
SELECT
    CASE i % 4 WHEN 0 THEN 'daily_report' WHEN 1 THEN 'recalculate_chart' WHEN 2 THEN 'send_email'
    ELSE 'send_webhook' END,
    '{{}}', iif(i % 1000 = 0, 'failed', 'done'), at_ms, 1, 100, iif(i % 1000 = 0, 'no', NULL),
    at_ms, at_ms + 5, at_ms + 5, at_ms + 1500
FROM (SELECT i, :to_ms - 6 * 86400000 + 6 * 86400000 * i / :jobs - 2000 AS at_ms FROM numbers)"""
_MOVES = """
INSERT INTO job_event (job_id, at_ms, verb, state)
SELECT
    j.id, j.created_at_ms, move.value ->> 0, coalesce(move.value ->> 1, j.state)
FROM job AS j
CROSS JOIN json_each('[["enqueue","pending"],["claim","running"],["finish",null]]') AS move
WHERE j.id > :first AND j.id <= :last + 1"""


class Years(NamedTuple):
    """How many rows there are to be."""

    devices: int
    readings: int
    jobs: int


def build(path: str, years: Years, now_ms: int) -> float:
    """Make the database at `path`, where there is none; return how many seconds that took."""
    began = time.monotonic()
    told = {**years._asdict(), "from_ms": now_ms - 30 * DAY_MS, "to_ms": now_ms}
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for statement in (_DEVICES, _SENSORS, _BOOTS, _GAPS):
            _run(connection, statement, {**told, "first": 1, "last": years.devices})
        _in_chunks(connection, _READINGS, years.readings, told)
        _in_chunks(connection, _QUARANTINE, years.readings // 1000, told)
        _in_chunks(connection, _JOBS, years.jobs, told)
        _in_chunks(connection, _MOVES, years.jobs, told)
        _fold(connection)
    return time.monotonic() - began


def _in_chunks(connection: sqlite3.Connection, sql: str, count: int, told: dict[str, int]) -> None:
    for first in range(0, count, _CHUNK):
        _run(connection, sql, {**told, "first": first, "last": min(first + _CHUNK, count) - 1})


def _fold(connection: sqlite3.Connection) -> None:
    plain = aggregates.calibration_of({})
    left = 1
    while left:
        connection.execute("BEGIN IMMEDIATE")
        left = aggregates.follow(connection, plain, _FOLD_ROWS)
        connection.execute("COMMIT")


def _run(connection: sqlite3.Connection, sql: str, told: dict[str, int]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(sql, told)
    connection.execute("COMMIT")
