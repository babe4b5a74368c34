"""The database file: how it is opened, read and written, and what happens when it is damaged.

Reads go through aiosqlite, each on a connection of its own and short, so that none holds a
snapshot and lets the WAL grow. Writes go through the one Writer.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiosqlite

from gateway.errors import Misconfigured
from gateway.store import alarms, damage
from gateway.store.migrate import migrate
from gateway.store.writer import Writer

T = TypeVar("T")
Item = TypeVar("Item")

MEMORY = ":memory:"
_MEMORY_URI = "file:/fieldpost?vfs=memdb"
_BUSY_TIMEOUT_S = 5.0


def connect(path: str) -> sqlite3.Connection:
    """Open `path` for writing, migrated.

    An acknowledged reading is on the disk: `synchronous=FULL` syncs the WAL at each commit.

    Raises:
        Misconfigured: SQLite is too old, or the database was made by a newer version.
        sqlite3.Error: it can't be opened or is damaged.
    """
    if sqlite3.sqlite_version_info < (3, 37):
        raise Misconfigured(
            f"SQLite {sqlite3.sqlite_version} is too old for STRICT tables: 3.37 or newer is needed"
        )
    connection = sqlite3.connect(
        _uri(path), uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None,
        check_same_thread=False, cached_statements=256,
    )  # fmt: skip
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -65536")
        migrate(connection)
        if path != MEMORY:  # after the first migration: that one is atomic without a WAL
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    except BaseException:
        connection.close()
        raise
    return connection


def _uri(path: str) -> str:
    return _MEMORY_URI if path == MEMORY else "file:" + quote(os.path.abspath(path))


class Database:
    """One SQLite file, many short readers, one writer. Made by `Database.open`."""

    def __init__(self, path: str, connection: sqlite3.Connection, readers: int) -> None:
        self.path = path
        self._listeners: list[Callable[[], None]] = []
        self._readers: asyncio.Queue[_Reader] = asyncio.Queue()
        for _ in range(readers):
            self._readers.put_nowait(_Reader(path))
        self._epoch = 0  # goes up when the file was replaced
        self._writer = Writer(
            connection, on_rollback=self._rolled_back, on_error=self._replace_if_damaged
        )

    @classmethod
    async def open(cls, path: str, *, readers: int = 2) -> "Database":
        """Open or make the database at `path` (":memory:" for one that ends with the process).

        A damaged file of ours is moved aside and a new one begun; an alarm says so.

        Raises:
            Misconfigured: the file is not ours or newer than this version, the folder can't be
                written, SQLite is too old.
        """
        connection = await asyncio.to_thread(_open, path)
        return cls(path, connection, readers)

    async def one(self, sql: str, params: Mapping[str, object] | None = None) -> sqlite3.Row | None:
        """Return the first row, None if there is none."""
        rows = await self.all(sql, params)
        return rows[0] if rows else None

    async def all(self, sql: str, params: Mapping[str, object] | None = None) -> list[sqlite3.Row]:
        """Return all rows of a statement that bounds them itself."""
        epoch = self._epoch
        async with self._reader() as connection:
            try:
                return list(await connection.execute_fetchall(sql, params or {}))
            except sqlite3.DatabaseError as error:
                if damage.is_damage(error):
                    await self.write(partial(self._report, error, epoch))
                raise

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in the next transaction and return what it returned, after the commit.

        It may be run again after a rollback, so it changes nothing outside the database.

        Raises:
            Unavailable: too much is waiting, or the database can't be written just now.
            Exception: what `work` raised; nothing of it is stored.
        """
        return await self._writer.submit(lambda connection, _: [work(connection)], None)

    async def write_together(
        self, work: Callable[[sqlite3.Connection, list[Item]], list[T]], item: Item
    ) -> T:
        """As `write`, but one call of `work` serves all the items that share its transaction.

        It returns a result for each. If it fails, it is called again for each item alone.
        """
        return await self._writer.submit(work, item)

    def on_rollback(self, forget: Callable[[], None]) -> None:
        """Call `forget` in the writer's thread whenever a transaction was rolled back."""
        self._listeners.append(forget)

    async def close(self) -> None:
        await self._writer.close()
        while not self._readers.empty():
            await self._readers.get_nowait().close()

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[aiosqlite.Connection]:
        reader = await self._readers.get()
        try:
            yield await reader.connection(self._epoch)
        finally:
            self._readers.put_nowait(reader)

    def _report(self, error: sqlite3.Error, epoch: int, _: sqlite3.Connection) -> None:
        """Let the writer meet what a reader met, unless the file was replaced meanwhile."""
        if epoch == self._epoch:
            raise error

    def _rolled_back(self) -> None:
        for forget in self._listeners:
            forget()

    def _replace_if_damaged(
        self, connection: sqlite3.Connection, error: sqlite3.Error
    ) -> sqlite3.Connection:
        if self.path == MEMORY or not damage.is_damage(error):
            return connection
        connection.close()
        connection = _begin_anew(self.path, error)
        self._epoch += 1
        self._rolled_back()
        return connection


class _Reader:
    """A read-only connection, opened at its first use and again when the file was replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None
        self._epoch = 0

    async def connection(self, epoch: int) -> aiosqlite.Connection:
        if self._connection is None or self._epoch != epoch:
            await self.close()
            self._connection = await aiosqlite.connect(
                _uri(self._path), uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None
            )
            self._connection.row_factory = sqlite3.Row
            await self._connection.execute_fetchall("PRAGMA query_only = ON")
            self._epoch = epoch
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


def _open(path: str) -> sqlite3.Connection:
    if path == MEMORY:
        return connect(path)
    damage.refuse_foreign(path)
    try:
        connection = connect(path)
        damage.check(connection, path)
    except sqlite3.Error as error:
        if damage.is_damage(error):
            return _begin_anew(path, error)
        raise Misconfigured(f"can not open the database {path}: {error}") from error
    return connection


def _begin_anew(path: str, error: sqlite3.Error) -> sqlite3.Connection:
    now_ms = time.time_ns() // 1_000_000
    aside = damage.move_aside(path, now_ms)
    connection = connect(path)
    detail = f"the database was damaged ({error}); it is kept as {aside}, a new one was begun"
    alarms.open_alarm(connection, "database_damaged", Path(aside).name, detail, now_ms)
    return connection
