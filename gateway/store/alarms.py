"""Alarms: one open row for each (kind, subject)."""

import sqlite3
from typing import TYPE_CHECKING

from gateway.store import queries

if TYPE_CHECKING:  # the database opens an alarm of its own when it was damaged
    from gateway.store.database import Database

_sql = queries.load("alarms")


def open_alarm(
    connection: sqlite3.Connection, kind: str, subject: str, detail: str, now_ms: int
) -> None:
    """Open an alarm, or leave the one that is open as it is."""
    connection.execute(_sql.open, (kind, subject, detail, now_ms))


def close_alarm(connection: sqlite3.Connection, alarm_id: int, now_ms: int) -> bool:
    """Close an open alarm; return False if there is none of that id."""
    return connection.execute(_sql.close, (now_ms, alarm_id)).rowcount == 1


async def list_open(database: "Database") -> list[sqlite3.Row]:
    """Return id, kind, subject, detail and opened_at_ms of the open ones, oldest first."""
    return await database.all(_sql.list_open)
