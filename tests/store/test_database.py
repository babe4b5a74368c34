"""The database file: opening, refusing, reading, writing in groups, damage and a full disk."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import Misconfigured, Unavailable
from gateway.store import devices
from gateway.store.database import MEMORY, Database
from gateway.store.migrate import APPLICATION_ID, migrations, newest

ADD = "INSERT INTO device (name, added_at_ms) VALUES (?, 0)"
NAMES = "SELECT name FROM device ORDER BY id"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield database
    await database.close()


async def add(database: Database, name: str) -> None:
    await database.write(lambda connection: connection.execute(ADD, (name,)))


async def names(database: Database) -> list[str]:
    return [row["name"] for row in await database.all(NAMES)]


async def test_an_acknowledged_write_is_synced_to_the_disk(database: Database) -> None:
    def pragmas(connection: sqlite3.Connection) -> list[object]:
        names = ("synchronous", "journal_mode", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await database.write(pragmas) == [2, "wal", 1]  # 2: FULL


async def test_a_write_can_be_read_when_it_returns(database: Database) -> None:
    await add(database, "a")
    assert await names(database) == ["a"]


async def test_a_failing_write_costs_its_neighbours_nothing(database: Database) -> None:
    writes = [add(database, name) for name in ("a", "b", "a", "c")]
    answers = await asyncio.gather(*writes, return_exceptions=True)
    kinds = [type(answer) for answer in answers]
    assert kinds == [type(None), type(None), sqlite3.IntegrityError, type(None)]
    assert await names(database) == ["a", "b", "c"]


async def test_an_error_of_the_caller_s_own_comes_back_and_leaves_nothing(
    database: Database,
) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute(ADD, ("a",))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await database.write(work)
    assert await names(database) == []


async def test_what_waits_together_shares_a_commit(database: Database) -> None:
    begun = 0

    def count(statement: str) -> None:
        nonlocal begun
        begun += statement.startswith("BEGIN")

    await database.write(lambda connection: connection.set_trace_callback(count))
    await asyncio.gather(*(add(database, str(n)) for n in range(100)))
    assert 1 <= begun < 20


async def test_a_cancelled_caller_does_not_take_the_transaction_along(database: Database) -> None:
    task = asyncio.create_task(add(database, "a"))
    await asyncio.sleep(0)
    task.cancel()
    await add(database, "b")
    assert await names(database) == ["a", "b"]


async def test_too_many_waiting_writes_are_put_off(database: Database) -> None:
    database._writer._max_waiting = 2
    answers = await asyncio.gather(
        *(add(database, str(n)) for n in range(5)), return_exceptions=True
    )
    put_off = [answer for answer in answers if isinstance(answer, Unavailable)]
    assert len(put_off) == 3
    assert put_off[0].retry_after_s >= 1
    await add(database, "after")


async def test_closing_finishes_what_waits(tmp_path: Path) -> None:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    writes = [asyncio.create_task(add(database, str(n))) for n in range(50)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*writes)
    with sqlite3.connect(tmp_path / "fieldpost.db") as connection:
        assert connection.execute("SELECT count(*) FROM device").fetchone() == (50,)
    connection.close()


async def test_a_full_disk_puts_writes_off_until_there_is_room(database: Database) -> None:
    async def max_pages(count: int) -> None:
        await database.write(lambda c: c.execute(f"PRAGMA max_page_count = {count}").fetchone())

    await max_pages(1)  # SQLite takes the present size when it is larger
    answers = await asyncio.gather(
        *(add(database, f"{n}" * 200) for n in range(10, 200)), return_exceptions=True
    )
    put_off = [answer for answer in answers if isinstance(answer, Unavailable)]
    assert put_off
    assert "full" in put_off[0].detail
    kept = await names(database)
    assert len(kept) == len(answers) - len(put_off)
    await max_pages(2**30)
    await add(database, "later")
    assert await names(database) == [*kept, "later"]


async def test_a_lock_that_can_not_be_had_costs_one_wait_and_not_one_for_each(
    tmp_path: Path,
) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    tries = 0

    def count(statement: str) -> None:
        nonlocal tries
        tries += statement.startswith("BEGIN")

    def prepare(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 20")
        connection.set_trace_callback(count)

    await database.write(prepare)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answers = await asyncio.gather(
        *(add(database, str(n)) for n in range(10)), return_exceptions=True
    )
    assert {type(answer) for answer in answers} == {Unavailable}
    assert tries == 1
    other.close()
    await database.close()


async def test_a_group_has_an_end(database: Database) -> None:
    sizes: list[int] = []

    def work(connection: sqlite3.Connection, items: list[int]) -> list[int]:
        sizes.append(len(items))
        return items

    answers = await asyncio.gather(*(database.write_together(work, n) for n in range(1000)))
    assert answers == list(range(1000))
    assert max(sizes) <= 256


async def test_another_process_holding_the_lock_puts_writes_off(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    await database.write(lambda connection: connection.execute("PRAGMA busy_timeout = 20"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        await add(database, "a")
    other.execute("ROLLBACK")
    other.close()
    await add(database, "a")
    await database.close()


async def test_a_reader_can_not_write(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await database.all("DELETE FROM device")


async def test_in_memory_everything_works_and_ends_with_the_process() -> None:
    database = await Database.open(MEMORY)
    await add(database, "a")
    assert await names(database) == ["a"]
    await database.close()
    again = await Database.open(MEMORY)
    assert await names(again) == []
    await again.close()


async def test_a_database_goes_on_after_it_was_closed(tmp_path: Path) -> None:
    for expected in ([], ["a"]):
        database = await Database.open(str(tmp_path / "fieldpost.db"))
        assert await names(database) == expected
        if not expected:
            await add(database, "a")
        await database.close()


async def test_a_database_made_by_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    await (await Database.open(str(path))).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {newest() + 1}")
    connection.close()
    with pytest.raises(Misconfigured, match="newer"):
        await Database.open(str(path))


@pytest.mark.parametrize("content", [b"a letter to grandmother", b"x" * 10_000])
async def test_a_file_that_is_no_database_is_refused_and_untouched(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    with pytest.raises(Misconfigured, match="not touched"):
        await Database.open(str(path))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["letter.txt"]


async def test_another_program_s_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cookies (host TEXT)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(Misconfigured, match="another program"):
        await Database.open(str(path))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["other.db"]


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="can not open"):
        await Database.open(str(tmp_path))


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    path.touch()
    database = await Database.open(str(path))
    assert await names(database) == []
    await database.close()
    assert path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")


def torn(path: Path) -> None:
    """Overwrite all but the first page, as a failing card does."""
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


async def test_a_damaged_database_is_moved_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    await add(database, "a")
    await database.close()
    torn(path)
    damaged = path.read_bytes()
    database = await Database.open(str(path))
    assert await names(database) == []
    alarm = await database.one("SELECT kind, subject, closed_at_ms FROM alarm")
    assert alarm is not None
    assert (alarm["kind"], alarm["closed_at_ms"]) == ("database_damaged", None)
    assert (tmp_path / alarm["subject"]).read_bytes() == damaged
    await database.close()


async def test_damage_met_while_running_is_moved_aside_and_the_gateway_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    await database.write(
        lambda c: c.executemany(ADD, [(f"device-{n}" * 20,) for n in range(2000)]) and None
    )
    await database.write(lambda c: c.execute("PRAGMA cache_size = 1") and None)
    await names(database)

    def checkpoint(connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute("BEGIN")

    await database.write(checkpoint)
    torn(path)
    with pytest.raises(Unavailable):
        await database.write(lambda c: c.execute("SELECT count(*) FROM device").fetchone())
    await add(database, "b")
    assert await names(database) == ["b"]
    alarm = await database.one("SELECT kind, subject FROM alarm")
    assert alarm is not None
    assert alarm["kind"] == "database_damaged"
    assert (tmp_path / alarm["subject"]).exists()
    await database.close()


async def test_damage_that_a_reader_meets_is_moved_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    for _ in range(3):
        await database.write(
            lambda c: c.executemany(ADD, [(os.urandom(500).hex(),) for _ in range(500)]) and None
        )
    await database.close()
    database = await Database.open(str(path))
    torn(path)
    with pytest.raises(Unavailable):
        await names(database)
    assert await names(database) == []
    assert len(list(tmp_path.glob("fieldpost.db.damaged-*"))) >= 1
    await database.close()


async def test_nothing_is_acknowledged_into_a_file_that_is_not_there_any_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    await add(database, "a")
    path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(Unavailable, match="moved or deleted"):
        await add(database, "b")
    (tmp_path / "elsewhere.db").rename(path)
    await add(database, "c")
    assert {"a", "c"} <= set(await names(database))  # "b" was not acknowledged, and may be there
    await database.close()


async def test_a_wal_without_its_database_is_refused_and_untouched(tmp_path: Path) -> None:
    wal = tmp_path / "fieldpost.db-wal"
    wal.write_bytes(b"what was stored last")
    for database in (None, b""):
        if database is not None:
            (tmp_path / "fieldpost.db").write_bytes(database)
        with pytest.raises(Misconfigured, match="stored last"):
            await Database.open(str(tmp_path / "fieldpost.db"))
        assert wal.read_bytes() == b"what was stored last"


async def test_devices_that_can_still_be_read_stay_registered(tmp_path: Path) -> None:
    path = tmp_path / "fieldpost.db"
    database = await Database.open(str(path))
    await devices.register(database, "shed", 1)
    await database.write(
        lambda c: (
            c.executemany(
                "INSERT INTO alarm (kind, subject, detail, opened_at_ms) VALUES (?, ?, ?, 0)",
                [("gap", str(n), "x" * 500) for n in range(200)],
            )
            and None
        )
    )
    await database.close()
    with open(path, "r+b") as file:  # the last pages only
        size = file.seek(0, os.SEEK_END)
        file.seek(size - 8 * 4096)
        file.write(b"\xa5" * (8 * 4096))
    database = await Database.open(str(path))
    assert await devices.generation(database, "shed") == 1
    alarm = await database.one("SELECT kind, detail FROM alarm")
    assert alarm is not None
    assert alarm["kind"] == "database_damaged"
    assert "1 devices are registered as they were" in alarm["detail"]
    await database.close()


async def test_a_locked_away_database_moves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "no-folder-here"
    folder.write_text("a file where the folder belongs")
    with pytest.raises(Misconfigured):
        await Database.open(str(folder / "fieldpost.db"))
    assert folder.read_text() == "a file where the folder belongs"


def test_migrations_are_numbered_without_holes() -> None:
    assert [number for number, _ in migrations()] == list(range(1, newest() + 1))


async def test_two_processes_may_make_the_database_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "fieldpost.db")
    databases = await asyncio.gather(*(Database.open(path) for _ in range(4)))
    await asyncio.gather(*(add(each, str(n)) for n, each in enumerate(databases)))
    assert len(await names(databases[0])) == 4
    for each in databases:
        await each.close()
