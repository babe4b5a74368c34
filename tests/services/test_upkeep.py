"""The files of the database become small again when nobody writes."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.store.database import Database
from gateway.upkeep import Upkeep

PAGE_BYTES = 4096


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE filling (body BLOB)")
    connection.execute(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 6000)"
        " INSERT INTO filling SELECT zeroblob(3900) FROM n"
    )


async def made_with(path: Path, auto_vacuum: str) -> None:
    await (await Database.open(str(path))).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA auto_vacuum = {auto_vacuum}")
        connection.execute("VACUUM")


async def database_with_room(path: Path) -> Database:
    """Return a database of 24 MB of which nearly all is free."""
    database = await Database.open(str(path))
    await database.write(fill)
    await database.write(lambda c: c.execute("DELETE FROM filling"))
    return database


def wal(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def upkeep(path: Path, *, later_ms: int = 0) -> Upkeep:
    """Return one for which now is so much later than what was last written."""
    written_ms = Path(f"{path}-wal").stat().st_mtime_ns // 1_000_000
    return Upkeep(str(path), lambda: written_ms + later_ms, quiet_ms=10_000)


async def test_while_something_is_written_nothing_is_done(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    database = await database_with_room(path)
    before = wal(path)
    assert not await upkeep(path, later_ms=9_999).run_once()
    assert wal(path) == before > 0
    await database.close()


async def test_the_wal_is_emptied_and_the_file_cut_when_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    await made_with(path, "INCREMENTAL")
    database = await database_with_room(path)
    assert await upkeep(path, later_ms=10_000).run_once()
    assert wal(path) == 0
    assert path.stat().st_size < 100 * PAGE_BYTES
    await database.write(fill_again)
    assert (await database.all("SELECT count(*) FROM filling"))[0][0] == 1
    await database.close()


def fill_again(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO filling VALUES ('x')")


async def test_a_reader_in_the_way_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    database = await database_with_room(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM filling").fetchone()
        await database.write(fill_again)
        assert not await upkeep(path, later_ms=10_000).run_once()
        await database.write(fill_again)
    assert await upkeep(path, later_ms=10_000).run_once()
    await database.close()


async def test_a_file_that_can_not_be_cut_says_what_a_person_can_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "fieldpost.db"
    await made_with(path, "NONE")
    database = await database_with_room(path)
    caplog.set_level(logging.INFO)
    keeper = upkeep(path, later_ms=10**9)
    for _ in range(2):
        assert await keeper.run_once()
    assert caplog.text.count("VACUUM") == 1
    await database.close()
