"""Who is registered, as the command line shows it."""

import sqlite3

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("roster")


async def everybody(db: Database) -> list[sqlite3.Row]:
    """Return name, generation, added_at_ms and last_seen_at_ms of every device, by name."""
    return await db.all(_sql.list_all)


async def count_keyed(db: Database) -> int:
    """Return how many devices have a key."""
    row = await db.one(_sql.count_keyed)
    return row["keyed"] if row else 0
