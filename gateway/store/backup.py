"""A copy of a database that others write to meanwhile, as it was at one instant."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from gateway.store import facts, queries
from gateway.store.facts import Fact

_sql = queries.load("backup")

STEP_PAGES = 2000  # 8 MB
_PAUSE_S = 0.001  # between two steps, in which others have the disk
_BUSY_TIMEOUT_S = 30.0


def _give_way() -> None:
    time.sleep(_PAUSE_S)


def copy(source: Path, target: Path, between: Callable[[], None] = _give_way) -> None:
    """Copy the database into `target`, an empty file, by SQLite's online backup.

    It reads one snapshot and takes no lock that a writer waits for. (Without the snapshot SQLite
    would begin anew with each commit of another process: https://sqlite.org/backup.html.) While it
    lasts the WAL of the source can not be reused, so it grows by what is written meanwhile.

    Args:
        between: called after each step.

    Raises:
        sqlite3.Error: one of the two can not be read or written.
    """
    with closing(_open(source, "ro")) as origin, closing(_open(target, "rw")) as copied:
        origin.execute("BEGIN")
        origin.execute(_sql.pin).fetchone()
        origin.backup(copied, pages=STEP_PAGES, progress=lambda *_: between())


def faults(path: Path) -> list[str]:
    """Return what `integrity_check` finds wrong with a database that nobody else has open.

    Raises:
        sqlite3.Error: it can not be read.
    """
    with closing(_open(path, "ro&immutable=1")) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    return [] if found == ["ok"] else found


def note(path: Path, copied: Fact) -> None:
    """Write down in the database that it was copied, if it is not too old to have a place for it.

    Raises:
        sqlite3.Error: it can not be written.
    """
    with closing(_open(path, "rw")) as connection:
        if connection.execute(_sql.has_facts).fetchone()[0]:
            connection.execute("PRAGMA synchronous = FULL")
            facts.put(connection, facts.LAST_BACKUP, copied)


def _open(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
