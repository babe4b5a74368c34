"""`check`: what `serve` would start with, and whether it can. Opens read-only, changes nothing."""

import os
import re
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from gateway import findings as inside
from gateway import listener, network_fs
from gateway.config import Config, settings, table_settings
from gateway.errors import Misconfigured
from gateway.findings import Finding
from gateway.keys import MASTER_KEY, OPERATOR_TOKEN
from gateway.store import damage, migrate, queries

MIB = 1024**2


def run(config: Config) -> int:
    """Print every setting with its origin, then every finding; return 0, or 2 if one is bad."""
    print("\n".join(in_force(config)), end="\n\n")
    bad = 0
    for finding in findings(config):
        print(f"{'ok ' if finding.good else 'BAD'} {finding.text}", flush=True)
        bad += not finding.good
    return 2 if bad else 0


def in_force(config: Config) -> Iterator[str]:
    """Yield `name = value  where it was said` for each setting."""
    for setting in settings():
        origin = config.sources.get(setting.name, "default")
        yield f"{setting.name:>16} = {getattr(config, setting.name)!s:<24} {origin}"
    for table in table_settings():
        origin = config.sources.get(table.name, "default")
        value = getattr(config, table.name)
        said = f"{len(value)} entries" if isinstance(value, list | dict) else "given"  # no secrets
        yield f"{table.name:>16} = {said if value else 'none':<24} {origin}"


def findings(config: Config) -> Iterator[Finding]:
    """Yield one finding for each thing that `serve` needs."""
    yield inside.sqlite()
    yield from _certificate(config)
    if config.folder is None:
        yield Finding(True, "database: in memory, gone when the gateway stops")
        return
    yield from _place(config)
    yield from _folder(config.folder)
    yield from _orphan(Path(config.db))
    yield from _database(Path(config.db), config.folder / MASTER_KEY)
    yield from _keys(Path(config.db), config.folder / MASTER_KEY)
    yield from _operator_token(config.folder / OPERATOR_TOKEN)
    yield _disk(config.folder, config.min_free_bytes)


def _certificate(config: Config) -> Iterator[Finding]:
    if config.tls_cert and config.tls_key:
        try:
            listener.certificate(config.tls_cert, config.tls_key)
            yield Finding(True, f"certificate: {config.tls_cert}")
        except Misconfigured as error:
            yield Finding(False, f"certificate: {error}")


def _place(config: Config) -> Iterator[Finding]:
    try:
        network_fs.refuse(config.db)
    except Misconfigured as error:
        yield Finding(False, str(error))


def _folder(folder: Path) -> Iterator[Finding]:
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(False, f"folder: {folder} can not be written by this user")


def _orphan(path: Path) -> Iterator[Finding]:
    if not path.exists() or path.stat().st_size == 0:
        try:
            damage.refuse_foreign(str(path))
        except Misconfigured as error:
            yield Finding(False, f"database: {error}")


def _operator_token(path: Path) -> Iterator[Finding]:
    if path.exists():
        yield _secret("operator token", path)


def _database(path: Path, key: Path) -> Iterator[Finding]:
    try:
        if not path.exists() or path.stat().st_size == 0:
            yield Finding(True, f"database: {path} is not there yet, serve makes it")
            return
        with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
            yield from _inside(path, connection)
            if connection.execute("PRAGMA user_version").fetchone()[0] == migrate.newest():
                yield from inside.of_today(path, connection, key, time.time_ns() // 1_000_000)
    except (OSError, sqlite3.Error) as error:
        yield Finding(False, f"database: {path} can not be read: {error}")


def read_only(path: Path) -> str:
    """Return the URI that opens the database and leaves nothing behind beside it.

    A read-only connection to a database in WAL mode makes a -wal and a -shm file when there are
    none. So when nobody has it open, and there is nothing to recover, it is opened as immutable.
    """
    wal = path.with_name(path.name + "-wal")
    idle = not wal.exists() or wal.stat().st_size == 0
    return f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if idle else ''}"


def _inside(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    def one(pragma: str) -> object:
        return connection.execute(f"PRAGMA {pragma}").fetchone()[0]

    if one("application_id") != migrate.APPLICATION_ID:
        yield Finding(False, f"database: {path} belongs to another program; give another --db")
        return
    version, newest = one("user_version"), migrate.newest()
    yield Finding(
        isinstance(version, int) and version <= newest,
        f"database: {path} has schema {version}, this version of Fieldpost knows {newest}",
    )
    verdict = one("quick_check")
    yield Finding(verdict == "ok", f"database: quick_check says {verdict}")


def _disk(folder: Path, min_free_bytes: int) -> Finding:
    there = next(place for place in [folder, *folder.absolute().parents] if place.exists())
    free = shutil.disk_usage(there).free
    return Finding(
        free >= min_free_bytes,
        f"disk: {free // MIB} MiB free; below {min_free_bytes // MIB} MiB readings are put off",
    )


def _keys(db: Path, path: Path) -> Iterator[Finding]:
    if path.exists():
        yield _secret("master key", path)
    elif _keyed(db):
        yield Finding(
            False,
            f"master key: {path} is gone, and with it the keys of {_keyed(db)} devices: bring it"
            " back, or every board needs a new key",
        )
    else:
        yield Finding(True, f"master key: {path} is not there yet, it is made when needed")


def _keyed(db: Path) -> int:
    """Return how many devices have a key, 0 if that can not be read."""
    try:
        with closing(sqlite3.connect(read_only(db), uri=True)) as connection:
            return int(connection.execute(queries.load("devices").count_keyed).fetchone()[0])
    except (OSError, sqlite3.Error):
        return 0


def _secret(what: str, path: Path) -> Finding:
    try:
        mode, text = stat.S_IMODE(path.stat().st_mode), path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        return Finding(False, f"{what}: {path} can not be read: {error}")
    if not re.fullmatch("[0-9a-f]{64}", text):
        return Finding(False, f"{what}: {path} is not 64 hex digits; bring back the right file")
    if mode & 0o077:
        return Finding(False, f"{what}: others can read it (mode {mode:o}): chmod 600 {path}")
    return Finding(True, f"{what}: {path}")
