"""The database file: how it is opened, read and written, and what happens when it is damaged.

Reads go through aiosqlite, each on a connection of its own and short, so that none holds a
snapshot and lets the WAL grow. Writes go through the one Writer.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiosqlite

from gateway.errors import Misconfigured
from gateway.store import damage
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
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded by a file just made
        migrate(connection)
        if path != MEMORY:  # after the first migration: that one is atomic without a WAL
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 16777216")  # what a long reader made of it
    except BaseException:
        connection.close()
        raise
    return connection


def _uri(path: str) -> str:
    return _MEMORY_URI if path == MEMORY else "file:" + quote(os.path.abspath(path))


class Database:
    """One SQLite file, many short readers, one writer. Made by `Database.open`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._epoch = 0  # goes up when the file was replaced
        self._readers: asyncio.Queue[_Reader] = asyncio.Queue()
        self._place: damage.Place | None = None  # in memory there is none
        self._writer = Writer(
            self._connect, require_place=self._require_place, on_damage=self._begin_anew
        )

    @classmethod
    async def open(cls, path: str, *, readers: int = 2) -> "Database":
        """Open or make the database at `path` (":memory:" for one that ends with the process).

        A damaged file of ours is moved aside and a new one begun; an alarm says so.

        Raises:
            Misconfigured: the file is not ours or newer than this version, the folder can't be
                written, SQLite is too old.
        """
        await asyncio.to_thread(_prepare, path)
        database = cls(path)
        # In memory it is there for as long as a connection is: so the writer's comes first.
        await database.write(lambda connection: None)
        for _ in range(readers):
            database._readers.put_nowait(await _Reader.open(path))
        return database

    async def one(
        self, sql: str, params: Mapping[str, object] | Sequence[object] = ()
    ) -> sqlite3.Row | None:
        """Return the first row, None if there is none."""
        rows = await self.all(sql, params)
        return rows[0] if rows else None

    async def all(
        self, sql: str, params: Mapping[str, object] | Sequence[object] = ()
    ) -> list[sqlite3.Row]:
        """Return all rows of a statement that bounds them itself."""
        epoch = self._epoch
        async with self._reader() as connection:
            try:
                return list(await connection.execute_fetchall(sql, params))
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

    def tell_of_commits(self, told: Callable[[float, int], None]) -> None:
        """After each commit call `told` with its seconds and how many shared it, in its thread."""
        self._writer.on_commit = told

    async def close(self) -> None:
        while not self._readers.empty():
            await self._readers.get_nowait().close()
        await self._writer.close()  # last: who may write also puts the WAL into the file

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[aiosqlite.Connection]:
        reader = await self._readers.get()
        try:
            yield await reader.connection(self._epoch)
        finally:
            self._readers.put_nowait(reader)

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self.path)
        if self.path != MEMORY:
            self._place = damage.Place(self.path)
        return connection

    def _require_place(self) -> None:
        if self._place is not None:
            self._place.require()

    def _report(self, error: sqlite3.Error, epoch: int, _: sqlite3.Connection) -> None:
        """Let the writer meet what a reader met, unless the file was replaced meanwhile."""
        if epoch == self._epoch:
            raise error

    def _begin_anew(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        """Move a damaged file aside and begin a new one; in the writer's thread."""
        if self.path == MEMORY:
            connection.close()
            return
        damage.replace(self.path, error, connection, connect)
        self._epoch += 1


class _Reader:
    """A read-only connection, opened anew when the file was replaced."""

    def __init__(self, path: str, connection: aiosqlite.Connection) -> None:
        self._path = path
        self._connection = connection
        self._epoch = 0
        self._reopening: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str) -> "_Reader":
        return cls(path, await _read_only(path))

    async def connection(self, epoch: int) -> aiosqlite.Connection:
        if self._epoch != epoch:
            # Whoever asks may be cancelled; a connection half opened would be lost with them.
            self._reopening = self._reopening or asyncio.create_task(self._reopen(epoch))
            await asyncio.shield(self._reopening)
        return self._connection

    async def close(self) -> None:
        await self._connection.close()

    async def _reopen(self, epoch: int) -> None:
        try:
            await self._connection.close()
            self._connection = await _read_only(self._path)
            self._epoch = epoch
        finally:
            self._reopening = None


async def _read_only(path: str) -> aiosqlite.Connection:
    connection = await aiosqlite.connect(
        _uri(path) + ("&" if path == MEMORY else "?") + "mode=ro",
        uri=True,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
    )
    connection.row_factory = sqlite3.Row
    return connection


def _prepare(path: str) -> None:
    """Look at what is at `path` before it is opened for good, and mend what can be mended."""
    if path == MEMORY:
        return
    damage.refuse_foreign(path)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with closing(connect(path)) as connection:
            damage.check(connection, path)
    except sqlite3.Error as error:
        if not damage.is_damage(error):
            raise Misconfigured(f"can not open the database {path}: {error}") from error
        damage.replace(path, error, None, connect)
    except OSError as error:
        raise Misconfigured(f"can not make the folder of {path}: {error.strerror}") from error
