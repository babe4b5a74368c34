"""Retention: what was kept long enough goes, and none of it comes in a second time."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.aggregate import Aggregator
from gateway.ingest import Ingest
from gateway.model import Verdicts
from gateway.retention import Retention
from gateway.store import aggregates, rebuilds, retention
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Asked, Queue
from gateway.store.rebuilds import Range
from gateway.tables import Retention as Kept

NOW_MS = 1_764_633_600_000  # a midnight
BOOT = "7f3a17c21"
TEN_DAYS = Kept(readings_days=10.0)


class House:
    """A database, its door, and a clock that tests set."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.ingest = Ingest(database)
        self.now_ms = NOW_MS
        self.up_ms = 0

    def now(self) -> Instant:
        return Instant(self.now_ms, self.now_ms - self.up_ms)

    async def send(self, *readings: dict[str, Any], days_ago: float = 0) -> Verdicts:
        body = json.dumps({"device": "d", "readings": readings}).encode()
        received_ms = NOW_MS - int(days_ago * DAY_MS)
        return await self.ingest.deliver(body, device=None, received_ms=received_ms)

    async def fold(self, calibration: dict[str, Any] | None = None) -> None:
        aggregator = Aggregator(self.database, {"calibration": calibration or {}})
        while await aggregator.run_once():
            pass

    def retention(self, kept: Kept = TEN_DAYS) -> Retention:
        return Retention(self.database, kept, self.now, folder=self.folder)

    async def column(self, sql: str) -> list[Any]:
        return [row[0] for row in await self.database.all(sql)]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield House(database, tmp_path)
    await database.close()


def reading(n: int, value: object = 1.5, **more: object) -> dict[str, object]:
    return {"id": f"d-{BOOT}-{n}", "sensor": "s", "value": value, **more}


def counts(verdicts: Verdicts) -> tuple[int, int, int]:
    return verdicts.stored, verdicts.duplicates, len(verdicts.rejected)


ARRIVALS = "SELECT n FROM reading ORDER BY id"
RANGES = "SELECT first || '-' || last FROM pruned ORDER BY first"


async def test_old_readings_go_and_are_duplicates_when_they_are_sent_again(house: House) -> None:
    await house.send(reading(1), reading(2), days_ago=12)
    await house.send(reading(3), days_ago=11)
    await house.send(reading(4), days_ago=9)
    await house.fold()
    assert await house.retention().run_once() == 3
    assert await house.column(ARRIVALS) == [4]
    again = await house.send(*(reading(n) for n in range(1, 6)))
    assert counts(again) == (1, 4, 0)
    assert await house.column(ARRIVALS) == [4, 5]
    await house.fold()
    assert sum(await house.column("SELECT count FROM aggregate WHERE span_ms = 86400000")) == 5


async def test_only_numbers_that_were_stored_count_as_taken_away(house: House) -> None:
    refused = await house.send(reading(1), reading(2, value=[]), reading(6), days_ago=12)
    assert len(refused.rejected) == 1
    body = {"device": "d", "readings": [], "lost": [{"boot": BOOT, "from": 3, "to": 4}]}
    await house.ingest.deliver(json.dumps(body).encode(), device=None, received_ms=NOW_MS)
    await house.send(reading(7))
    await house.fold()
    assert await house.retention().run_once() == 2
    assert await house.column(RANGES) == ["1-1", "6-6"]
    # 2 was in quarantine, 3 called lost, 5 in a gap: none of them was ever stored.
    assert counts(await house.send(*(reading(n) for n in (1, 2, 3, 5, 6)))) == (3, 2, 0)


async def test_ranges_that_come_to_touch_become_one(house: House) -> None:
    for ns in ((1, 2), (7, 8), (4,), (5, 6), (3,)):
        await house.send(*(reading(n) for n in ns), days_ago=12)
        await house.send(reading(90 + ns[0]), days_ago=12)
    await house.send(reading(100))
    await house.fold()
    upto = (await house.column("SELECT max(id) FROM reading"))[0]
    while await house.database.write(lambda c: retention.prune_readings(c, upto, rows=2)):
        pass
    ranges = await house.column(RANGES)
    assert ranges[0] == "1-8"
    assert await house.column("SELECT pruned_to FROM boot") == [97]


async def test_what_the_aggregates_have_not_counted_stays(house: House) -> None:
    await house.send(reading(1), days_ago=12)
    await house.fold()
    await house.send(reading(2), days_ago=12)
    await house.send(reading(3))
    assert await house.retention().run_once() == 1
    assert await house.column(ARRIVALS) == [2, 3]


async def test_the_newest_stays_so_that_no_key_comes_twice(house: House) -> None:
    await house.send(reading(1), reading(2), days_ago=12)
    await house.fold()
    await house.retention().run_once()
    assert await house.column(ARRIVALS) == [2]
    await house.send(reading(3))
    assert await house.column("SELECT id FROM reading ORDER BY id") == [2, 3]


async def test_a_clock_that_was_wrong_makes_no_reading_old(house: House) -> None:
    unset = NOW_MS / DAY_MS - 1  # 1970: the clock was not set
    for n, days_ago in enumerate((12, unset, -4000, 11, unset, -4000, 9, unset, 8), start=1):
        await house.send(reading(n), days_ago=days_ago)
    await house.fold()
    await house.retention().run_once()
    assert await house.column(ARRIVALS) == [5, 6, 7, 8, 9]


async def test_a_clock_that_leaps_ahead_is_believed_after_a_day(house: House) -> None:
    await house.send(reading(1), days_ago=1)
    await house.send(reading(2))
    await house.fold()
    keeper = house.retention()
    assert await keeper.run_once() == 0
    house.now_ms += 4000 * DAY_MS
    assert await keeper.run_once() == 0
    house.now_ms, house.up_ms = house.now_ms + DAY_MS - 1, house.up_ms + DAY_MS - 1
    assert await keeper.run_once() == 0
    assert await house.retention().run_once() == 0  # a new start does not shorten it
    house.now_ms, house.up_ms = house.now_ms + 1, house.up_ms + 1
    assert await keeper.run_once() == 1


async def test_beyond_its_size_the_oldest_go_but_none_of_the_last_day(house: House) -> None:
    text = "x" * 255
    for start in range(1, 12_000, 60):
        many = [reading(n, value=None, error=text) for n in range(start, start + 60)]
        await house.send(*many, days_ago=3 if start < 6_000 else 0.5)
    await house.fold()
    used_bytes = (await retention.size(house.database)).used_bytes
    keeper = house.retention()
    assert await keeper._prune_to_size(used_bytes - 1_000_000, NOW_MS) == 5_000
    assert await keeper._prune_to_size(1, NOW_MS) == 6_000 - 5_000
    assert len(await house.column(ARRIVALS)) == 6_000


async def test_quarantine_goes_by_age_and_is_counted_no_more(house: House) -> None:
    await house.send(reading(1, value=[]), days_ago=40)
    await house.send(reading(2, value=[]), days_ago=3)
    await house.retention(Kept(quarantine_days=30.0)).run_once()
    left = await house.column("SELECT reading_id FROM quarantine")
    assert left == [f"d-{BOOT}-2"]
    assert await house.column("SELECT quarantined FROM device") == [1]


async def test_hours_go_before_days(house: House) -> None:
    for n, days_ago in enumerate((40, 20, 1), start=1):
        await house.send(reading(n, at_ms=NOW_MS - days_ago * DAY_MS), days_ago=days_ago)
    await house.fold()
    await house.retention(Kept(hourly_days=10.0, daily_days=30.0)).run_once()
    spans = "SELECT span_ms FROM aggregate ORDER BY from_ms, span_ms"
    assert await house.column(spans) == [DAY_MS, HOUR_MS, DAY_MS]


async def test_a_recalculation_leaves_alone_what_it_can_not_make_anew(house: House) -> None:
    first, second = NOW_MS - 12 * DAY_MS, NOW_MS - 11 * DAY_MS
    sent = [(1, 12, first, 1.0), (2, 12, second, 2.0), (3, 9, second, 3.0), (4, 9, first, 4.0)]
    for n, days_ago, at_ms, value in [*sent, (5, 8, NOW_MS - 8 * DAY_MS, 5.0)]:
        await house.send(reading(n, value, at_ms=at_ms), days_ago=days_ago)
    await house.fold()
    assert await house.retention().run_once() == 2
    wanted = Range(None, 0, 2**60)
    assert await rebuilds.days_of(house.database, wanted) == (3, 2)
    doubled = aggregates.calibration_of({"calibration": {"d": {"s": {"scale": 2.0}}}})
    write, newest = house.database.write, await aggregates.cursor(house.database)
    assert await write(lambda c: rebuilds.begin(c, 7, wanted, doubled))
    assert await write(lambda c: rebuilds.count(c, 7, 2)) == newest
    assert await write(lambda c: rebuilds.put_in_place(c, 7, newest))
    sums = "SELECT sum FROM aggregates WHERE span_ms = 86400000 ORDER BY from_ms"
    assert await house.column(sums) == [5.0, 5.0, 10.0]
    assert await house.column("SELECT count(*) FROM aggregate WHERE rebuild <> 0") == [0]


def aged(file: Path, days: float) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("x")
    at_s = NOW_MS / 1000 - days * 86400
    os.utime(file, (at_s, at_s))


async def test_files_go_with_the_jobs_that_they_are_of(house: House) -> None:
    asked = Asked("import_readings", '{"file": "wanted.csv"}')
    job_id, _ = await house.database.write(lambda c: Queue().enqueue(c, asked, NOW_MS))
    kept = {"reports/daily-report-new.html": 6, "imports/wanted.csv": 2, "imports/new.csv": 0.5,
            f"imports/{job_id}.txt": 2}  # fmt: skip
    gone = {"reports/daily-report-old.html": 8, "imports/orphan.csv": 2, "imports/999.txt": 2}
    for name, days in (kept | gone).items():
        aged(house.folder / name, days)
    await house.retention().run_once()
    files = {str(f.relative_to(house.folder)) for f in house.folder.glob("*/*")}
    assert files == set(kept)


async def test_an_id_outside_the_grammar_is_known_again_too(house: House) -> None:
    def line(name: str, value: float = 1.5) -> dict[str, object]:
        return reading(1, value) | {"id": name}

    await house.send(line("import-1"), line("import-2"), days_ago=12)
    await house.send(reading(3))
    await house.fold()
    assert await house.retention().run_once() == 2
    again = await house.send(line("import-1"), line("import-2", 2.5), line("import-3"))
    assert counts(again) == (1, 2, 0)


async def test_ids_outside_the_grammar_stay_known(house: House) -> None:
    await house.send(reading(1) | {"id": "import-1"}, days_ago=12)
    await house.send(reading(3))
    await house.fold()
    assert await house.retention().run_once() == 1
    asked = ["import-1", "import-2"]
    known = await house.database.write(lambda c: retention.ids_among(c, asked))
    assert known == {"import-1"}
