"""What a look of the rules found, as changes that are written together in one transaction."""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from gateway.store import alarms, watching


class IsTrue(NamedTuple):
    """A condition holds: its alarm is opened, or says from now on what is true now."""

    kind: str
    subject: str
    detail: str
    mark: str | None = None


class IsOver(NamedTuple):
    """It is true no more."""

    kind: str
    subject: str


class Happened(NamedTuple):
    """An event: its alarm is opened, or counts it."""

    kind: str
    subject: str
    detail: str


class Remember(NamedTuple):
    """A device as it is known from now on."""

    seen: watching.Seen


class ClockStepped(NamedTuple):
    step_ms: int


class NoJobFailed(NamedTuple):
    """Failed jobs are gone by a way that knows nothing of alarms."""


Change = IsTrue | IsOver | Happened | Remember | ClockStepped | NoJobFailed


def write(connection: sqlite3.Connection, changes: Iterable[Change], now_ms: int) -> None:
    """Write them, in order."""
    for change in changes:
        _write(connection, change, now_ms)


def _write(connection: sqlite3.Connection, change: Change, now_ms: int) -> None:
    match change:
        case IsTrue(kind, subject, detail, mark):
            if not alarms.open_alarm(connection, kind, subject, detail, now_ms, mark):
                alarms.restate(connection, kind, subject, detail)
        case IsOver(kind, subject):
            alarms.close_open(connection, kind, subject, now_ms)
        case Happened(kind, subject, detail):
            alarms.happen(connection, kind, subject, detail, now_ms)
        case Remember(seen):
            watching.remember(connection, seen)
        case ClockStepped(step_ms):
            alarms.step_clock(connection, step_ms)
        case NoJobFailed():
            alarms.job_is_no_more_failed(connection, now_ms)
