"""A file that is not ours is never touched; a damaged one of ours is moved aside, never deleted."""

import os
import sqlite3
from pathlib import Path

from gateway.errors import Misconfigured
from gateway.store.migrate import APPLICATION_ID

_HEADER = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68  # https://www.sqlite.org/fileformat.html, "The Database Header"
_CHECKED_WHOLE_BYTES = 64 * 1024 * 1024


def refuse_foreign(path: str) -> None:
    """Look at a file without opening it as a database.

    Raises:
        Misconfigured: it is a folder, not readable, or no database of Fieldpost's.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "rb") as file:
            head = file.read(_APPLICATION_ID_AT + 4)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Misconfigured(f"can not open the database {path}: {error.strerror}") from error
    if not head:
        return
    ours = APPLICATION_ID.to_bytes(4, "big")
    if not head.startswith(_HEADER) or head[_APPLICATION_ID_AT:] != ours:
        what = "another program's database" if head.startswith(_HEADER) else "not a database"
        raise Misconfigured(f"{path} is {what}; it was not touched: give another --db")


def is_damage(error: BaseException) -> bool:
    """Return whether SQLite says that the file is damaged (and not full, locked or unreadable)."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check(connection: sqlite3.Connection, path: str) -> None:
    """Look for damage at start. A large file is not read whole: its damage shows when it is met.

    Raises:
        sqlite3.DatabaseError: with SQLITE_CORRUPT.
    """
    if os.path.getsize(path) > _CHECKED_WHOLE_BYTES:
        return
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def move_aside(path: str, now_ms: int) -> str:
    """Rename the database, with its -wal and -shm, to `….damaged-<now_ms>`; return that name."""
    aside = f"{path}.damaged-{now_ms}"
    for suffix in ("-wal", "-shm", "-journal", ""):
        try:
            os.rename(path + suffix, aside + suffix)
        except FileNotFoundError:
            continue
    return aside
