"""Links that log an operator in, and the browsers that are logged in: hashes only.

They stand in the database, so that `python -m gateway login` in one process makes what `serve` in
another takes, and a log-out holds everywhere and after a restart.
"""

import hashlib
import secrets
import sqlite3

from gateway.store import queries
from gateway.store.database import Database

LINK_LIFE_S = 600
SESSION_LIFE_S = 12 * 3600

_SECRET_BYTES = 32
_sql = queries.load("sessions")


def hashed(secret: str) -> str:
    """Return the lowercase hex SHA-256 of a secret; of 256 random bits, so it needs no salt."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


async def make_link(database: Database, now_ms: int) -> str:
    """Return the secret of a new link: valid once, for LINK_LIFE_S."""
    secret = secrets.token_hex(_SECRET_BYTES)

    def work(connection: sqlite3.Connection) -> None:
        connection.execute(_sql.prune_links, (now_ms,))
        connection.execute(_sql.add_link, (hashed(secret), now_ms + LINK_LIFE_S * 1000))

    await database.write(work)
    return secret


async def is_link(database: Database, secret: str, now_ms: int) -> bool:
    """Return whether the link could be used now; it still can be after this."""
    row = await database.one(_sql.find_link, {"sha256": hashed(secret)})
    return row is not None and row["until_ms"] > now_ms


async def log_in(database: Database, link: str, now_ms: int) -> str | None:
    """Use up the link and return the secret of a new session; None if it is void."""
    secret = secrets.token_hex(_SECRET_BYTES)

    def work(connection: sqlite3.Connection) -> bool:
        if connection.execute(_sql.use_link, (hashed(link), now_ms)).rowcount != 1:
            return False
        connection.execute(_sql.prune, (now_ms,))
        until_ms = now_ms + SESSION_LIFE_S * 1000
        connection.execute(_sql.open, (hashed(secret), now_ms, until_ms))
        return True

    return secret if await database.write(work) else None


async def is_open(database: Database, secret: str, now_ms: int) -> bool:
    """Return whether the session is one of ours, and neither over nor logged out."""
    row = await database.one(_sql.find, {"sha256": hashed(secret)})
    return row is not None and row["until_ms"] > now_ms


async def log_out(database: Database, secret: str) -> None:
    await database.write(lambda c: c.execute(_sql.close, (hashed(secret),)).rowcount)


async def log_everybody_out(database: Database) -> int:
    """End every session and make every link void; return how many sessions there were."""

    def work(connection: sqlite3.Connection) -> int:
        connection.execute(_sql.drop_links)
        return connection.execute(_sql.close_all).rowcount

    return await database.write(work)
