"""Devices and the generation of each one's key."""

import sqlite3

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("devices")


async def register(database: Database, name: str, now_ms: int) -> int:
    """Note that `name` has a key, and return its generation; the same again changes nothing."""

    def work(connection: sqlite3.Connection) -> int:
        connection.execute(_sql.register, (name, now_ms))
        generation: int = connection.execute(_sql.generation, {"name": name}).fetchone()[0]
        return generation

    return await database.write(work)


async def generation(database: Database, name: str) -> int | None:
    """Return the generation of the device's key; None if it has none or isn't known."""
    row = await database.one(_sql.generation, {"name": name})
    return None if row is None else row["generation"]


async def everybody(database: Database) -> list[sqlite3.Row]:
    """Return name, generation, added_at_ms and last_seen_at_ms of every device, by name."""
    return await database.all(_sql.list_all)


async def count_keyed(database: Database) -> int:
    """Return how many devices have a key."""
    row = await database.one(_sql.count_keyed)
    return row["keyed"] if row else 0
