"""`/healthz` and `/readyz`, and the floor of free disk space."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Unavailable
from gateway.store.database import Database
from gateway.store.migrate import APPLICATION_ID
from gateway.web.disk import Disk
from gateway.web.health import Health
from tests.web.conftest import Open
from tests.web.house import House, problem_of


async def test_the_process_is_alive_even_when_the_disk_is_full(open_house: Open) -> None:
    house = await open_house(min_free_bytes=2**50)
    assert (await house.ask("GET", "/healthz")).status == 200


async def test_a_gateway_that_can_write_is_ready(house: House) -> None:
    assert (await house.ask("GET", "/readyz")).json == {"ready": True}


async def test_a_full_disk_is_told_as_the_reason(open_house: Open) -> None:
    house = await open_house(min_free_bytes=2**50)
    answer = await house.ask("GET", "/readyz")
    assert "disk" in problem_of(answer)["detail"]
    assert (answer.status, answer.headers["Retry-After"]) == (503, "30")


async def test_a_database_that_can_not_be_written_is_told_as_the_reason(house: House) -> None:
    path = house.db.path
    other = sqlite3.connect(path)
    try:
        other.execute("BEGIN IMMEDIATE")  # holds the write lock, as a stuck program would
        answer = await house.ask("GET", "/readyz")
    finally:
        other.close()
    assert "database" in problem_of(answer)["detail"]
    assert answer.status == 503


async def test_a_database_that_can_not_be_read_is_unavailable_and_no_fault_of_the_caller(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.db.write(lambda connection: connection.execute("DROP TABLE lost").rowcount)
    await house.register("esp32-1")
    answer = await house.operator("/v1/devices")
    assert problem_of(answer)["status"] == 503
    assert "Retry-After" in answer.headers
    assert "lost" not in answer.text
    assert [record for record in caplog.records if record.exc_info]


async def test_being_ready_is_proved_by_a_real_write_that_changes_nothing(house: House) -> None:
    wal = Path(house.db.path + "-wal")
    before = wal.stat().st_size
    assert (await house.ask("GET", "/readyz")).status == 200
    assert wal.stat().st_size > before
    with sqlite3.connect(house.db.path) as reader:
        assert reader.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    reader.close()


class Counting:
    """A database that counts its writes."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.writes = 0

    async def write(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        self.writes += 1
        return await self._db.write(work)


async def test_asking_often_writes_once_a_second_at_most(house: House) -> None:
    db, now = Counting(house.db), [100.0]
    health = Health(db, Disk(None, 0), monotonic=lambda: now[0])  # type: ignore[arg-type]
    written = []
    for elapsed_s in (0.0, 0.0, 0.9, 0.2):
        now[0] += elapsed_s
        await asyncio.gather(*(health.ready(None) for _ in range(5)))  # type: ignore[arg-type]
        written.append(db.writes)
    assert written == [1, 1, 1, 2]


def test_the_disk_is_looked_at_once_a_second_and_comes_back_by_itself() -> None:
    now, free, looked = [0.0], [99], []

    def free_bytes(folder: Path) -> int:
        looked.append(now[0])
        return free[0]

    disk = Disk(Path("data"), 100, free_bytes, lambda: now[0])
    for at_s in (0.0, 0.5, 0.9):
        now[0] = at_s
        with pytest.raises(Unavailable):
            disk.require_room()
    free[0] = 100
    now[0] = 1.0
    disk.require_room()
    assert looked == [0.0, 1.0]


def test_in_memory_there_is_always_room() -> None:
    Disk(None, 2**60, lambda folder: 0).require_room()
