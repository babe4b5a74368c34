"""The aggregator and the job that makes its work anew, beside deliveries, on a real database."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from gateway.aggregate import LOOK_S, Aggregator
from gateway.store import aggregates
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.database import Database
from tests.services.works import GIVE_UP_S, Works

NOON_MS = 20_000 * DAY_MS + 12 * HOUR_MS


@pytest.fixture
async def works(tmp_path: Path) -> AsyncIterator[Works]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Works(database, tmp_path)
    await database.close()


@asynccontextmanager
async def following(aggregator: Aggregator) -> AsyncIterator[None]:
    task = asyncio.create_task(aggregator.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until_counted(works: Works) -> None:
    async with asyncio.timeout(GIVE_UP_S):
        while await aggregates.has_news(works.database):
            await asyncio.sleep(0.01)


async def follow_all(aggregator: Aggregator) -> None:
    while await aggregator.run_once():
        pass


def scattered(random: Random, count: int) -> list[dict[str, object]]:
    """Return readings of some days, in no order of time."""
    made: list[dict[str, object]] = []
    for _ in range(count):
        at_ms = NOON_MS + random.randrange(-3 * DAY_MS, 3 * DAY_MS)
        number = {"value": random.randrange(99) / 4}
        kinds = [number, {"value": True}, {"text": "x"}, {"value": None, "error": "no answer"}]
        made.append({"sensor": random.choice("st"), "at_ms": at_ms, **random.choice(kinds)})
    return made


async def test_what_arrives_is_counted_within_a_second(works: Works) -> None:
    async with following(Aggregator(works.database)):
        await works.deliver("d", {"value": 1.5, "at_ms": NOON_MS})
        async with asyncio.timeout(1.0):
            await until_counted(works)
    assert LOOK_S < 1
    assert await works.counted() == await works.expected() != []


async def test_a_late_arrival_lands_in_the_hour_in_which_it_was_taken(works: Works) -> None:
    aggregator = Aggregator(works.database)
    await works.deliver("d", {"value": 1.0, "at_ms": NOON_MS}, {"value": 5.0, "at_ms": NOON_MS + 2})
    await follow_all(aggregator)
    await works.deliver("d", {"value": 9.0, "at_ms": NOON_MS - DAY_MS})
    await works.deliver("d", {"value": 7.0, "at_ms": NOON_MS + 1})
    await follow_all(aggregator)
    hours = [row for row in await works.counted() if row[2] == HOUR_MS]
    assert [(row[3], row[4], row[7], row[10], row[12]) for row in hours] == [
        (NOON_MS - DAY_MS, 1, 9.0, 9.0, 9.0),
        (NOON_MS, 3, 13.0, 1.0, 5.0),
    ]


async def test_booleans_count_as_numbers_and_texts_and_errors_apart(works: Works) -> None:
    sent = ({"value": True}, {"value": False}, {"text": "on"}, {"value": None, "error": "no"})
    await works.deliver("d", *({**one, "at_ms": NOON_MS} for one in sent))
    await follow_all(Aggregator(works.database))
    row = (await works.counted())[0]
    assert row[4:10] == (2, 1, 1, 1.0, 0.0, 1.0)


async def test_a_step_that_dies_after_its_work_counts_nothing(works: Works) -> None:
    await works.deliver("d", *scattered(Random(1), 20))

    def die(connection: sqlite3.Connection) -> None:
        aggregates.follow(connection, "[]", 7)
        raise RuntimeError("the process ends here")

    aggregator = Aggregator(works.database, rows=7)
    for _ in range(5):
        with pytest.raises(RuntimeError):
            await works.database.write(die)
        await aggregator.run_once()
    assert await works.counted() == await works.expected()


async def test_two_aggregators_on_one_file_count_each_reading_once(
    works: Works, tmp_path: Path
) -> None:
    other = await Database.open(str(tmp_path / "fieldpost.db"))
    random = Random(2)
    first, second = Aggregator(works.database, rows=3), Aggregator(other, rows=5)
    async with following(first), following(second):
        for _ in range(20):
            await works.deliver("d", *scattered(random, 10))
        await until_counted(works)
    await other.close()
    assert await works.counted() == await works.expected()


async def test_recalculating_while_readings_arrive_counts_each_once(works: Works) -> None:
    random, calibration = Random(3), {"d": {"s": {"scale": 2.0, "offset": -1.0}}}
    for _ in range(10):
        await works.deliver("d", *scattered(random, 60))
        await works.deliver("e", *scattered(random, 60))
    await follow_all(Aggregator(works.database))  # with no calibration
    settings = {"calibration": calibration}
    async with (
        following(Aggregator(works.database, settings, rows=50)),
        works.pool(**settings) as pool,
    ):
        job_id = await works.ask(pool, "recalculate_chart", **{"from": 0, "to": 2 * NOON_MS})
        done = asyncio.create_task(works.until(job_id, "done"))
        while not done.done():
            await works.deliver("d", *scattered(random, 20))
        await done
        await works.deliver("e", *scattered(random, 20))
        await until_counted(works)
    assert await works.counted() == await works.expected(calibration)
    assert await works.rows("SELECT count(*) FROM rebuild") == [(0,)]


async def test_recalculating_a_day_of_a_device_leaves_the_rest(works: Works) -> None:
    for device in ("d", "e"):
        for day in (0, 1):
            await works.deliver(device, {"value": 4.0, "at_ms": NOON_MS + day * DAY_MS})
    await follow_all(Aggregator(works.database))
    calibration = {name: {"s": {"scale": 10.0}} for name in "de"}
    async with works.pool(calibration=calibration) as pool:
        day = {"from": "2024-10-05", "to": "2024-10-05", "device": "d"}
        await works.until(await works.ask(pool, "recalculate_chart", **day), "done")
    days = [(row[0], row[7]) for row in await works.counted() if row[2] == DAY_MS]
    assert days == [("d", 4.0), ("d", 40.0), ("e", 4.0), ("e", 4.0)]


async def test_a_device_that_does_not_exist_is_told_and_not_tried_again(works: Works) -> None:
    told = await works.refused("recalculate_chart", **{"from": 0, "to": 1, "device": "nobody"})
    assert told == "there is no device nobody: /v1/devices lists those that are known"
