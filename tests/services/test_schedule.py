"""Periodic jobs: each slot once, missed ones once together, and whatever the clock does."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Misconfigured
from gateway.schedule import Schedule
from gateway.store.database import Database
from gateway.store.jobs import Queue
from gateway.tables import Periodic
from tests.services import job_kinds

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


class Wall:
    """A database and a wall clock that is set by hand."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.kinds = job_kinds.registry({"folder": str(folder)})
        self.now_ms = ms("2026-11-30T10:00:00Z")

    def schedule(self, cron: str, time_zone: str = "UTC", **also: Any) -> Schedule:
        asked = {"name": "nightly", "kind": "act"} | also
        periodic = Periodic(cron=cron, time_zone=time_zone, **asked)
        return Schedule(self.database, Queue(), self.kinds, [periodic], now_ms=lambda: self.now_ms)

    async def until(self, schedule: Schedule, end: str, step_ms: int = MINUTE_MS) -> list[str]:
        """Look at each step up to the instant; return when a job was asked for, UTC."""
        asked = []
        while self.now_ms <= ms(end):
            if await schedule.run_once():
                asked.append(datetime.fromtimestamp(self.now_ms / 1000, UTC).isoformat()[:16])
            self.now_ms += step_ms
        return asked

    async def jobs(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.database.all("SELECT * FROM job ORDER BY id")]


@pytest.fixture
async def wall(tmp_path: Path) -> AsyncIterator[Wall]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Wall(database, tmp_path)
    await database.close()


async def test_a_job_is_asked_for_at_its_time_and_not_when_the_schedule_is_first_seen(
    wall: Wall,
) -> None:
    schedule = wall.schedule("0 3 * * *")
    asked = await wall.until(schedule, "2026-12-02T04:00:00Z")
    assert asked == ["2026-12-01T03:00", "2026-12-02T03:00"]
    first = (await wall.jobs())[0]
    assert (first["kind"], first["request_id"]) == ("act", "schedule:nightly")


async def test_a_slot_is_seen_in_its_own_second(wall: Wall) -> None:
    schedule = wall.schedule("0 * * * *")
    await schedule.run_once()
    wall.now_ms = ms("2026-11-30T10:59:59Z") + 999
    assert await schedule.run_once() == []
    wall.now_ms += 1
    assert len(await schedule.run_once()) == 1


async def test_however_many_slots_were_missed_one_run_catches_up(wall: Wall) -> None:
    await wall.schedule("*/5 * * * *").run_once()
    wall.now_ms += 3 * DAY_MS
    restarted = wall.schedule("*/5 * * * *")
    assert len(await restarted.run_once()) == 1
    assert await restarted.run_once() == []
    wall.now_ms += 5 * MINUTE_MS
    assert len(await restarted.run_once()) == 1


async def test_several_processes_that_see_the_same_slot_ask_once(wall: Wall, tmp_path) -> None:
    others = [await Database.open(str(tmp_path / "fieldpost.db")) for _ in range(4)]
    schedules = []
    for database in others:
        periodic = Periodic(name="nightly", cron="* * * * *", kind="act")
        schedules.append(
            Schedule(database, Queue(), wall.kinds, [periodic], now_ms=lambda: wall.now_ms)
        )
    for _ in range(20):
        await asyncio.gather(*(schedule.run_once() for schedule in schedules))
        wall.now_ms += MINUTE_MS
    assert len(await wall.jobs()) == 19
    for database in others:
        await database.close()


# --- the nights when the clocks change: Lisbon leaves out 01:00..02:00, and has it twice ---


async def night(wall: Wall, cron: str, begin: str, end: str) -> list[str]:
    wall.now_ms = ms(begin)
    return await wall.until(wall.schedule(cron, "Europe/Lisbon"), end)


@pytest.mark.parametrize(
    ("cron", "asked"),
    [
        ("30 1 * * *", ["2026-03-29T01:00"]),  # does not exist that night: right after the gap
        ("30 0 * * *", ["2026-03-29T00:30"]),
        ("30 2 * * *", ["2026-03-29T01:30"]),
        ("0 * * * *", ["2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T02:00"]),
    ],
)
async def test_the_night_that_leaves_out_an_hour_leaves_out_no_job(
    wall: Wall, cron: str, asked: list[str]
) -> None:
    found = await night(wall, cron, "2026-03-28T23:30:00Z", "2026-03-29T02:30:00Z")
    assert found == asked


@pytest.mark.parametrize(
    ("cron", "asked"),
    [
        ("30 1 * * *", ["2026-10-25T00:30"]),  # comes twice that night: the first time
        ("30 0 * * *", ["2026-10-24T23:30"]),
        ("30 2 * * *", ["2026-10-25T02:30"]),
        ("0 * * * *", [f"2026-10-2{when}:00" for when in ("4T23", "5T00", "5T01", "5T02")]),
    ],
)
async def test_the_night_that_has_an_hour_twice_has_no_job_twice(
    wall: Wall, cron: str, asked: list[str]
) -> None:
    found = await night(wall, cron, "2026-10-24T22:30:00Z", "2026-10-25T02:45:00Z")
    assert found == asked


async def test_a_start_in_the_hour_that_comes_twice_catches_up_no_older_slot(wall: Wall) -> None:
    wall.now_ms = ms("2026-10-22T12:00:00Z")
    await wall.schedule("30 1 * * *", "Europe/Lisbon").run_once()
    wall.now_ms = ms("2026-10-25T00:35:00Z")  # 01:35, the first time
    schedule = wall.schedule("30 1 * * *", "Europe/Lisbon")
    assert len(await schedule.run_once()) == 1
    assert await wall.until(schedule, "2026-10-25T03:00:00Z") == []


# --- steps of the clock ---


async def test_a_clock_that_goes_back_repeats_no_slot(wall: Wall) -> None:
    schedule = wall.schedule("0 * * * *")
    assert len(await wall.until(schedule, "2026-11-30T13:30:00Z")) == 3
    wall.now_ms = ms("2026-11-30T11:30:00Z")
    assert await wall.until(schedule, "2026-11-30T14:30:00Z") == ["2026-11-30T14:00"]


async def test_a_clock_that_goes_on_catches_up_once(wall: Wall) -> None:
    schedule = wall.schedule("*/10 * * * *")
    await wall.until(schedule, "2026-11-30T10:35:00Z")
    wall.now_ms += 2 * HOUR_MS
    assert len(await schedule.run_once()) == 1
    assert await schedule.run_once() == []


async def test_a_clock_that_was_years_ahead_silences_nothing(wall: Wall) -> None:
    schedule = wall.schedule("0 * * * *")
    await wall.until(schedule, "2026-11-30T11:30:00Z")
    wall.now_ms = ms("2040-01-01T00:30:00Z")
    await wall.until(schedule, "2040-01-01T03:30:00Z")
    wall.now_ms = ms("2026-11-30T11:40:00Z")
    asked = await wall.until(schedule, "2026-11-30T13:30:00Z")
    assert asked == ["2026-11-30T12:00", "2026-11-30T13:00"]


async def test_a_schedule_first_seen_years_ahead_runs_when_the_clock_is_right(wall: Wall) -> None:
    wall.now_ms = ms("2040-01-01T00:30:00Z")
    schedule = wall.schedule("0 * * * *")
    await schedule.run_once()
    wall.now_ms = ms("2026-11-30T10:30:00Z")
    assert await wall.until(schedule, "2026-11-30T11:30:00Z") == ["2026-11-30T11:00"]


async def test_a_start_in_1970_asks_for_nothing_and_the_right_time_for_what_was_missed(
    wall: Wall,
) -> None:
    await wall.schedule("0 3 * * *").run_once()
    wall.now_ms = 5000
    restarted = wall.schedule("0 3 * * *")
    assert await restarted.run_once() == []
    wall.now_ms = ms("2026-12-01T10:00:00Z")
    assert len(await restarted.run_once()) == 1
    assert await restarted.run_once() == []


# --- what it asks for, and what it can not ---


async def test_the_args_may_name_the_day_of_the_slot_where_it_is(wall: Wall) -> None:
    args = {"do": "{date}", "mark": "{day_before}", "seconds": 1}
    wall.now_ms = ms("2026-12-31T12:00:00Z")
    schedule = wall.schedule("30 0 * * *", "Pacific/Auckland", args=args)
    await schedule.run_once()
    await wall.until(schedule, "2027-01-01T12:00:00Z")
    [job] = await wall.jobs()
    assert job["args"] == '{"do":"2027-01-02","mark":"2027-01-01","seconds":1}'


async def test_a_rule_that_was_changed_asks_for_nothing_that_was_due_before(wall: Wall) -> None:
    await wall.schedule("0 3 * * *").run_once()
    wall.now_ms += DAY_MS
    assert await wall.schedule("0 4 * * *").run_once() == []


async def test_a_schedule_that_was_away_and_comes_back_is_a_new_one(wall: Wall) -> None:
    await wall.schedule("0 3 * * *").run_once()
    for name in ("other", "nightly"):
        wall.now_ms += DAY_MS
        running = asyncio.create_task(wall.schedule("0 3 * * *", name=name).run())
        async with asyncio.timeout(10):
            while not await wall.database.all("SELECT 1 FROM schedule WHERE name = ?", (name,)):
                await asyncio.sleep(0.01)
        running.cancel()
    assert await wall.jobs() == []


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ({"kind": "dance"}, "no kind of job called 'dance'; there are: act, heavy"),
        ({"cron": "61 * * * *"}, "cron '61 * * * *' can not be read: Bad minute"),
        ({"cron": "every day"}, "can not be read: Wrong number of fields"),
        ({"time_zone": "Europe/Atlantis"}, "no time zone 'Europe/Atlantis'"),
        ({"time_zone": "../../etc/passwd"}, "no time zone"),
        ({"args": {"seconds": "many"}}, "seconds"),
    ],
)
async def test_what_can_not_be_asked_for_is_said_at_the_start(
    wall: Wall, also: dict[str, Any], said: str
) -> None:
    with pytest.raises(Misconfigured, match=r"^schedule nightly: ") as caught:
        wall.schedule(**{"cron": "0 3 * * *"} | also)
    assert said in str(caught.value)
