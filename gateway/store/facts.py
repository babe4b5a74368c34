"""What the gateway keeps of itself: the last backup, what the master key is known by, …"""

import sqlite3
from typing import NamedTuple

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("facts")

LAST_BACKUP = "last_backup"  # value: its size in bytes
MASTER_KEY = "master_key"  # value: what the key that devices' keys are made of is known by
RETENTION_CLOCK = "retention_clock"  # at_ms: the newest instant that retention believed


class Fact(NamedTuple):
    """`at_ms`: when it came to be so."""

    value: str
    at_ms: int


async def get(database: Database, name: str) -> Fact | None:
    row = await database.one(_sql.get, (name,))
    return None if row is None else Fact(row["value"], row["at_ms"])


def read(connection: sqlite3.Connection, name: str) -> Fact | None:
    row = connection.execute(_sql.get, (name,)).fetchone()
    return None if row is None else Fact(*row)


def put(connection: sqlite3.Connection, name: str, fact: Fact) -> None:
    connection.execute(_sql.put, (name, *fact))
