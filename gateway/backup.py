"""`backup`: a verified copy of the database, whole under its name or not there at all."""

import os
import secrets
import sqlite3
import sys
import time
from pathlib import Path

from gateway.config import Config
from gateway.errors import Misconfigured
from gateway.keys import MASTER_KEY
from gateway.store import backup, damage
from gateway.store.facts import Fact


def run(config: Config, target: Path, *, force: bool) -> int:
    """Copy the database to `target`, say what the copy holds and what not; return the exit code.

    It does not bring the database up to date, so it can be made before a new version is started.

    Args:
        force: a file that is there is replaced, once the copy is complete and found good.

    Raises:
        Misconfigured: it can not be made; nothing has changed then.
    """
    if config.folder is None:
        raise Misconfigured("a database in memory can not be copied: give the file with --db")
    source = Path(config.db)
    _refuse(source, target, force=force)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        size_bytes = _copy(source, draft)
        _put_in_place(draft, target, force=force)
    except (OSError, sqlite3.Error) as error:
        raise Misconfigured(f"{source} can not be copied to {target}: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
    _note(source, size_bytes)
    print(f"{target}: {size_bytes} bytes, checked; all that was acknowledged before it began")
    print(
        f"It does not hold {MASTER_KEY}: keep a copy of that elsewhere. With both a gateway goes on"
        " as it was; with this alone every board needs a new key, and whoever steals it can speak"
        " for none. Nor does it hold the files in reports/ and imports/.",
        file=sys.stderr,
    )
    return 0


def _refuse(source: Path, target: Path, *, force: bool) -> None:
    if not source.exists():
        raise Misconfigured(f"there is no database {source}: give the right --db")
    damage.refuse_foreign(str(source))
    own = [source, *(source.with_name(source.name + end) for end in ("-wal", "-shm", "-journal"))]
    if target.resolve() in [path.resolve() for path in own] or _is_same(source, target):
        raise Misconfigured(f"{target} is the database itself: give another place for the copy")
    if target.is_dir():
        raise Misconfigured(f"{target} is a folder: give the name of the file in it, too")
    if not target.parent.is_dir():
        raise Misconfigured(f"there is no folder {target.parent}: make it first")
    if target.exists() and not force:
        raise Misconfigured(f"{target} is there already: give another name, or --force")


def _is_same(source: Path, target: Path) -> bool:
    return target.exists() and os.path.samefile(source, target)


def _copy(source: Path, draft: Path) -> int:
    """Make the copy, verify it, and put it onto the disk; return its size in bytes."""
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    backup.copy(source, draft)
    if faults := backup.faults(draft):
        raise Misconfigured(
            f"the copy of {source} is damaged, and so most likely is the database: {faults[0]};"
            " `check` says more. The copy was thrown away"
        )
    with draft.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


def _put_in_place(draft: Path, target: Path, *, force: bool) -> None:
    """Give the draft its name. A link refuses a name that somebody has taken meanwhile."""
    if force:
        draft.replace(target)
    else:
        os.link(draft, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _note(source: Path, size_bytes: int) -> None:
    try:
        backup.note(source, Fact(str(size_bytes), time.time_ns() // 1_000_000))
    except sqlite3.Error as error:
        print(f"fieldpost: that there is a copy was not written down: {error}", file=sys.stderr)
