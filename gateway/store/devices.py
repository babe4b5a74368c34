"""Devices, the generations of their keys, their tokens, and what they may beside delivering."""

import sqlite3
from typing import NamedTuple

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("devices")


class Identity(NamedTuple):
    """How a device proves who it is. A generation is never made twice.

    Args:
        generation: of its key; None if it has none.
        next_generation: made by a rotation and not used yet; till then both are valid.
        may_ask: whether it may ask for jobs.
    """

    generation: int | None
    next_generation: int | None
    may_ask: bool


async def register(database: Database, name: str, now_ms: int) -> int:
    """Note that `name` has a key, and return the generation of the newest that is valid.

    The same again changes nothing; after a revocation it is a new generation.
    """

    def work(connection: sqlite3.Connection) -> int:
        connection.execute(_sql.register, (name, now_ms))
        found = _identity(connection.execute(_sql.identity, {"name": name}).fetchone())
        assert found is not None
        assert found.generation is not None
        return found.next_generation or found.generation

    return await database.write(work)


async def identity(database: Database, name: str) -> Identity | None:
    """Return how the device proves who it is; None if it isn't known."""
    return _identity(await database.one(_sql.identity, {"name": name}))


async def generation(database: Database, name: str) -> int | None:
    """Return the generation of the device's key; None if it has none or isn't known."""
    found = await identity(database, name)
    return None if found is None else found.generation


async def rotate(database: Database, name: str) -> int | None:
    """Make a new generation, valid beside the old one until it is used; None if it has no key."""

    def work(connection: sqlite3.Connection) -> int | None:
        row = connection.execute(_sql.rotate, (name,)).fetchone()
        return None if row is None else row[0]

    return await database.write(work)


async def take_up(database: Database, name: str, generation: int) -> None:
    """Note that the device used its new key: the old one is void. The same again is nothing."""
    await database.write(lambda c: c.execute(_sql.take_up, (name, generation)).rowcount)


async def revoke(database: Database, name: str) -> bool:
    """Make its keys and its token void; return False if it had none."""
    return await _one_row(database, _sql.revoke, name)


async def give_bearer(database: Database, name: str, sha256: str, now_ms: int) -> None:
    """Note what the device's token hashes to; the one it had is void."""
    await _one_row(database, _sql.give_bearer, name, sha256, now_ms)


async def revoke_bearer(database: Database, name: str) -> bool:
    """Make its token void; return False if it had none."""
    return await _one_row(database, _sql.revoke_bearer, name)


async def whose(database: Database, sha256: str) -> tuple[str, bool] | None:
    """Return whose token hashes to this, and whether that device may ask for jobs."""
    row = await database.one(_sql.find_bearer, {"sha256": sha256})
    return None if row is None else (row["name"], bool(row["may_ask"]))


async def let_ask(database: Database, name: str, may: bool) -> bool:
    """Let the device ask for jobs, or no longer; return False if there is no such device."""
    return await _one_row(database, _sql.let_ask, int(may), name)


async def everybody(database: Database) -> list[sqlite3.Row]:
    """Return name, generation, added_at_ms, last_seen_at_ms, next_generation, has_bearer and
    may_ask of every device, by name."""
    return await database.all(_sql.list_all)


def is_known(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether there is such a device; inside a transaction of the writer."""
    return connection.execute(_sql.identity, {"name": name}).fetchone() is not None


async def count_keyed(database: Database) -> int:
    """Return how many devices have a key."""
    row = await database.one(_sql.count_keyed)
    return row["keyed"] if row else 0


def _identity(row: sqlite3.Row | None) -> Identity | None:
    return None if row is None else Identity(row[0], row[1], bool(row[2]))


async def _one_row(database: Database, sql: str, *params: object) -> bool:
    return await database.write(lambda c: c.execute(sql, params).rowcount == 1)
