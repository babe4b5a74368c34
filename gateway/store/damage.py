"""A file that is not ours is never touched; a damaged one of ours is moved aside, never deleted."""

import logging
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeGuard
from urllib.parse import quote

from gateway.errors import Misconfigured
from gateway.store import alarms, queries
from gateway.store.migrate import APPLICATION_ID

log = logging.getLogger(__name__)

_sql = queries.load("devices")

_HEADER = b"SQLite format 3\x00"
# https://www.sqlite.org/fileformat.html, "The Database Header" and "B-tree Pages"
_APPLICATION_ID_AT = 68
_CELLS_AT = 103  # how many tables and indexes the schema has, of one page
_HEAD_BYTES = 105
_CHECKED_WHOLE_BYTES = 64 * 1024 * 1024


def refuse_foreign(path: str) -> None:
    """Look at a file without opening it as a database.

    Raises:
        Misconfigured: it is a folder, not readable, or no database of Fieldpost's.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        head = b""
    except OSError as error:
        raise Misconfigured(f"can not open the database {path}: {error.strerror}") from error
    if not head:
        _refuse_orphan(path)
        return
    owner = head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    ours = APPLICATION_ID.to_bytes(4, "big")
    # An empty database is nobody's: another process of ours may be making it.
    is_free = owner == bytes(4) and head[_CELLS_AT:] == bytes(2)
    if not head.startswith(_HEADER) or not (owner == ours or is_free):
        what = "another program's database" if head.startswith(_HEADER) else "not a database"
        raise Misconfigured(f"{path} is {what}; it was not touched: give another --db")


def _refuse_orphan(path: str) -> None:
    wal = Path(path + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise Misconfigured(
            f"{path} is missing, and {wal} beside it holds what was stored last: bring the"
            " database back, or move that file away to begin a new one"
        )


# What SQLite says when it is the file's fault or another's, and may pass; https://sqlite.org/rescode.html
_TROUBLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
    }
)
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Moved(Exception):
    """The database file is not where it was: what is written now would be lost with it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was moved or deleted while the gateway runs: bring it back, or start the"
            " gateway again to begin a new one"
        )


class Place:
    """Where an open database stands. `require` is asked before each answer that says stored."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _identity(path)

    def require(self) -> None:
        """Raise Moved unless the file at the path is still the one that was opened."""
        if _identity(self._path) != self._file:
            raise Moved(self._path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_trouble(error: BaseException) -> bool:
    """Return whether it is the file's fault, and not that of the statement."""
    return _primary_code(error) in _TROUBLE | _DAMAGE


def is_damage(error: BaseException) -> TypeGuard[sqlite3.Error]:
    """Return whether SQLite says that the file is damaged (and not full, locked or unreadable)."""
    return _primary_code(error) in _DAMAGE


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


def _primary_code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def replace(
    path: str,
    error: sqlite3.Error,
    connection: sqlite3.Connection | None,
    connect: Callable[[str], sqlite3.Connection],
) -> None:
    """Move a damaged database aside, begin a new one at its place, and open an alarm in it.

    Args:
        connection: the one that met the damage; closed after the move, since closing the last
            connection would write the WAL into the damaged file and delete it.
    """
    now_ms = time.time_ns() // 1_000_000
    aside = _move_aside(path, now_ms)
    if connection is not None:
        connection.close()
    with closing(connect(path)) as anew:
        kept = _salvage_devices(aside, anew, now_ms)
        detail = (
            f"the database was damaged ({error}); it is kept as {aside}, a new one was begun."
            f" {kept} devices are registered as they were; any other needs `devices add` again,"
            " and has the key it had"
        )
        log.error("%s", detail)
        alarms.open_alarm(anew, "database_damaged", Path(aside).name, detail, now_ms)


def _salvage_devices(aside: str, anew: sqlite3.Connection, now_ms: int) -> int:
    """Register again what can still be read of who was; return how many."""
    kept = 0
    try:
        with closing(sqlite3.connect(f"file:{quote(aside)}?mode=ro", uri=True)) as old:
            for name, generation in old.execute(_sql.keyed):
                kept += anew.execute(_sql.register_again, (name, generation, now_ms)).rowcount
    except sqlite3.Error:
        pass  # what was read until here is kept
    return kept


def _move_aside(path: str, now_ms: int) -> str:
    """Rename the database, with its -wal and -shm, to `….damaged-<now_ms>`; return that name."""
    aside = f"{path}.damaged-{now_ms}"
    for suffix in ("-wal", "-shm", "-journal", ""):
        with suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    return aside
