"""What `check` looks for inside a database of today's schema, through a read-only connection."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.keys import known_by
from gateway.store import facts, queries
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.retention import SANE_MS
from gateway.upkeep import how_to_shrink, is_much_free

_sql = queries.load("check")

MIB = 1024**2
OLDEST_SQLITE = (3, 37)
_SLACK_MS = HOUR_MS  # by which a clock may be behind the newest reading without being wrong
_BACKUP_DAYS = 7  # after which somebody who makes backups misses one


class Finding(NamedTuple):
    """`text` says what is, and what to do if it is not `good`."""

    good: bool
    text: str


def sqlite() -> Finding:
    """Say whether this Python's SQLite is new enough."""
    wanted = ".".join(map(str, OLDEST_SQLITE))
    return Finding(
        sqlite3.sqlite_version_info >= OLDEST_SQLITE,
        f"SQLite: {sqlite3.sqlite_version}; {wanted} or newer is needed",
    )


def of_today(
    path: Path, connection: sqlite3.Connection, master_key: Path, now_ms: int
) -> Iterator[Finding]:
    """Yield what there is to say of a database that is whole."""
    yield _foreign_keys(connection)
    yield _clock(connection, now_ms)
    yield from _master_key(connection, master_key)
    yield _backup(connection, path, now_ms)
    yield from _free(connection, path)


def _foreign_keys(connection: sqlite3.Connection) -> Finding:
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    if broken is None:
        return Finding(True, "database: every row has what it refers to")
    return Finding(
        False,
        f"database: row {broken[1]} of {broken[0]} refers to a row of {broken[2]} that is not"
        " there: bring back a backup, or keep this file and begin a new one",
    )


def _clock(connection: sqlite3.Connection, now_ms: int) -> Finding:
    (newest_ms,) = connection.execute(_sql.newest_receipt).fetchone()
    if now_ms < SANE_MS:
        return Finding(False, "clock: it was never set: see to NTP before boards deliver")
    if newest_ms is not None and newest_ms > now_ms + _SLACK_MS:
        hours = (newest_ms - now_ms) // HOUR_MS
        return Finding(
            False,
            f"clock: the newest reading came {hours} hours after what the clock says is now: set"
            " the clock right (if it was ahead then and is right now, this passes by itself)",
        )
    return Finding(True, "clock: not behind what came last")


def _master_key(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    known = facts.read(connection, facts.MASTER_KEY)
    (keyed,) = connection.execute(_sql.count_keyed).fetchone()
    if known is None or not keyed or not path.exists():
        return
    try:
        found = known_by(bytes.fromhex(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        return  # said where the file is looked at
    yield Finding(
        found == known.value,
        "master key: the one that devices' keys are made of"
        if found == known.value
        else f"master key: {path} is another than the keys of {keyed} devices are made of: bring"
        " that back; if it is gone for good, `python -m gateway accept-key`",
    )


def _backup(connection: sqlite3.Connection, path: Path, now_ms: int) -> Finding:
    last = facts.read(connection, facts.LAST_BACKUP)
    if last is None:
        return Finding(
            True, f"backup: none yet: python -m gateway backup PATH --db {path} makes one"
        )
    days = max(0, now_ms - last.at_ms) // DAY_MS
    mib = int(last.value) // MIB
    if days <= _BACKUP_DAYS:
        return Finding(True, f"backup: {days} days ago, {mib} MiB")
    return Finding(
        False, f"backup: the last one was made {days} days ago: see why, and make one now"
    )


def _free(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    free, page_bytes, auto_vacuum = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("freelist_count", "page_size", "auto_vacuum")
    )
    if is_much_free(free, os.path.getsize(path), page_bytes) and not auto_vacuum:
        yield Finding(True, f"database: {how_to_shrink(str(path))}")
