"""The tail: each move of each job is told once, whoever made it, whatever becomes of the file."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from gateway.states import State
from gateway.store import moves
from gateway.store.database import Database
from gateway.store.jobs import Asked, Queue
from gateway.store.moves import Move
from gateway.tail import Tail


class Followed:
    """A database, and what its tail has told."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tail = Tail(database)
        self.told: list[Move] = []

    async def ask(self, count: int = 1) -> None:
        def enqueue(connection: object) -> None:
            for _ in range(count):
                Queue().enqueue(connection, Asked("act", "{}"), 1000)  # type: ignore[arg-type]

        await self.database.write(enqueue)

    async def look(self) -> list[Move]:
        """Return what is told at the next look."""
        self.told.clear()
        await self.tail.run_once()
        return list(self.told)


@pytest.fixture
async def followed(tmp_path: Path) -> AsyncIterator[Followed]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    found = Followed(database)
    await found.ask()
    found.tail.subscribe(found.told.extend)
    await found.tail.begin()
    yield found
    await database.close()


async def test_what_was_there_before_is_not_told_and_what_comes_is_told_once(
    followed: Followed,
) -> None:
    assert await followed.look() == []
    await followed.ask()
    assert await followed.look() == [Move(2, "enqueue", State.PENDING, "act")]
    assert await followed.look() == []


async def test_more_than_one_read_brings_is_told_all_and_in_order(followed: Followed) -> None:
    await followed.ask(2 * moves.MOST_AT_ONCE + 1)
    told = [move.job_id for move in await followed.look()]
    assert told == list(range(2, 2 * moves.MOST_AT_ONCE + 3))


async def test_a_new_file_whose_numbers_begin_again_is_followed_from_its_start(
    followed: Followed,
) -> None:
    await followed.ask(3)
    await followed.look()
    await followed.database.write(lambda c: c.execute("DELETE FROM job_event").rowcount)
    assert await followed.look() == []
    await followed.ask()
    assert len(await followed.look()) == 1


async def test_a_job_that_is_gone_again_is_told_without_its_kind(followed: Followed) -> None:
    await followed.ask()
    await followed.database.write(lambda c: c.execute("DELETE FROM job").rowcount)
    assert await followed.look() == [Move(2, "enqueue", State.PENDING, None)]


async def test_a_listener_that_fails_does_not_keep_the_others_from_hearing(
    tmp_path: Path, followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Sequence[Move]) -> None:
        raise ValueError("as asked")

    heard: list[Move] = []
    followed.tail.subscribe(fail)
    followed.tail.subscribe(heard.extend)
    await followed.ask()
    await followed.look()
    assert len(heard) == 1
    assert "as asked" in caplog.text


async def test_progress_is_told_when_it_changed_and_only_if_wanted(followed: Followed) -> None:
    wanted = [False]
    followed.tail.subscribe(lambda _: None, lambda: wanted[0])
    told = {
        "w": "UPDATE job SET state = 'running', token = 't', lease_until_ms = 1, progress = 10",
        "p": "UPDATE job SET progress = 20, stage = 'half'",
    }
    await followed.database.write(lambda c: c.execute(told["w"]).rowcount)
    assert await followed.look() == []
    wanted[0] = True
    assert await followed.look() == [Move(1, "renew", State.RUNNING, "act")]
    assert await followed.look() == []
    await followed.database.write(lambda c: c.execute(told["p"]).rowcount)
    assert await followed.look() == [Move(1, "renew", State.RUNNING, "act")]
