"""Keeping the database file small: what the WAL holds goes into it, what is free in it is cut off.

On a connection of its own, since neither can be done inside the writer's transactions. Both let a
writer wait for some ms at most.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

# A checkpoint waits for readers with the writer's lock in hand: so this is also how long it may
# hold up a delivery.
_BUSY_TIMEOUT_S = 0.05
_INCREMENTAL = 2  # https://sqlite.org/pragma.html#pragma_auto_vacuum


def checkpoint(path: str) -> bool:
    """Write what the WAL holds into the database and empty it; False: somebody was in the way.

    Raises:
        sqlite3.Error: the database can not be opened or written.
    """
    with closing(_open(path)) as connection:
        # First without any lock that a writer needs: then there is little left for the second.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


def can_shrink(path: str) -> bool:
    """Return whether the file was made so that it can be cut piece by piece."""
    with closing(_open(path)) as connection:
        return bool(connection.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL)


def shrink(path: str, pages: int) -> int:
    """Cut at most so many free pages (0: none) off the file; return how many are free then.

    Raises:
        sqlite3.Error: the database can not be written just now.
    """
    with closing(_open(path)) as connection:
        # `executescript` goes on until SQLite is done; `execute` would stop after one page.
        if pages:
            connection.executescript(f"PRAGMA incremental_vacuum({pages:d})")
        free: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return free


def _open(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
