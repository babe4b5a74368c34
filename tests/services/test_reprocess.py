"""What was refused is judged again: by the real rules, on a real database, by real workers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.aggregate import Aggregator
from gateway.store import quarantine
from gateway.store.aggregates import DAY_MS
from gateway.store.database import Database
from tests.services.works import BOOT, Works

SEEN_MS = 1_764_529_200_000
KIND = "reprocess_readings"
HELD = "SELECT reading_id, reason FROM quarantine ORDER BY id"


@pytest.fixture
async def works(tmp_path: Path) -> AsyncIterator[Works]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Works(database, tmp_path)
    await database.close()


async def quarantined(works: Works, body: str, device: str = "d", id: str | None = None) -> None:
    """Put into quarantine what an earlier version refused."""

    def add(connection: Any) -> None:
        connection.execute(
            "INSERT INTO quarantine (digest, reading_id, device, reason, body, received_at_ms)"
            " VALUES (randomblob(16), ?, ?, 'a rule of before', ?, 5000)",
            (id, device, body),
        )
        connection.execute("UPDATE device SET quarantined = quarantined + 1 WHERE name = ?",
                           (device,))  # fmt: skip

    await works.database.write(add)


async def counts(works: Works) -> tuple[Any, ...]:
    return (
        await works.rows("SELECT stored, duplicates, quarantined, last_seen_at_ms FROM device")
    )[0]


async def test_what_is_valid_now_is_stored_and_leaves_quarantine(works: Works) -> None:
    await works.deliver("d", {"value": 1.0}, received_ms=SEEN_MS)
    await quarantined(works, f'{{"id":"d-{BOOT}-7","sensor":"s","value":2.5,"at_ms":7000}}')
    await quarantined(works, '{"id":"other","sensor":"s","text":"on"}')
    await works.run(KIND)
    assert await works.rows(HELD) == []
    sql = "SELECT value, text, n, at_ms, clock, received_at_ms FROM readings WHERE at_ms < 9000"
    assert await works.rows(sql) == [
        (2.5, None, 7, 7000, "synced", 5000), (None, "on", None, 5000, "none", 5000),
    ]  # fmt: skip
    assert await counts(works) == (3, 0, 0, SEEN_MS)


async def test_what_is_still_refused_stays_as_it_is(works: Works) -> None:
    refused = {"id": "x", "sensor": "s", "value": "much"}
    await works.deliver("d", refused, {"sensor": "", "value": 1.0}, received_ms=SEEN_MS)
    before = await works.rows(HELD)
    assert len(before) == 2
    await works.run(KIND)
    assert await works.rows(HELD) == before
    assert (await counts(works))[:3] == (0, 0, 2)


async def test_a_conflict_stays_and_one_that_turns_out_to_be_one_says_so(works: Works) -> None:
    await works.deliver("d", {"id": "a", "value": 1.0}, {"id": "b", "value": 1.0})
    await works.deliver("d", {"id": "a", "value": 2.0})
    await quarantined(works, '{"id":"b","sensor":"s","value":3.0}', id="b")
    await works.run(KIND)
    conflict = "id was used before for another reading"
    assert await works.rows(HELD) == [("a", conflict), ("b", conflict)]
    assert (await counts(works))[:3] == (2, 0, 2)


async def test_what_was_stored_meanwhile_leaves_quarantine_and_is_not_stored_twice(
    works: Works,
) -> None:
    await works.deliver("d", {"id": "a", "value": 1.0})
    await quarantined(works, '{"id":"a","sensor":"s","value":1.0}')
    await quarantined(works, '{"id":"c","sensor":"s","value":1.0}')
    await quarantined(works, '{"id":"c","sensor":"s","value":1.0}')
    await works.run(KIND)
    assert await works.rows(HELD) == []
    assert await works.rows("SELECT count(*) FROM reading") == [(2,)]


async def test_only_the_quarantine_of_the_device_that_is_named_is_judged(works: Works) -> None:
    for device in "de":
        await works.deliver(device, {"value": 1.0})
        await quarantined(works, f'{{"id":"q{device}","sensor":"s","value":1.0}}', device)
    await works.run(KIND, device="e")
    assert await works.rows("SELECT device FROM quarantine") == [("d",)]


async def test_a_step_that_dies_leaves_each_either_here_or_there(works: Works) -> None:
    await works.deliver("d", {"value": 1.0})
    for number in range(5):
        await quarantined(works, f'{{"id":"q{number}","sensor":"s","value":1.0}}')

    def die(connection: Any) -> None:
        assert quarantine.judge(connection, 0, 9, rows=2) is not None
        raise RuntimeError("the process ends here")

    with pytest.raises(RuntimeError):
        await works.database.write(die)
    here = await works.rows("SELECT count(*) FROM quarantine")
    assert here + await works.rows("SELECT count(*) FROM reading") == [(5,), (1,)]
    await works.run(KIND)
    here = await works.rows("SELECT count(*) FROM quarantine")
    assert here + await works.rows("SELECT count(*) FROM reading") == [(0,), (6,)]


async def test_a_range_of_what_is_stored_is_calibrated_again(works: Works) -> None:
    for day in (1, 2):
        await works.deliver("d", {"value": 4.0, "at_ms": day * DAY_MS})
    await Aggregator(works.database).run_once()
    works.settings["calibration"] = {"d": {"s": {"offset": 0.5}}}
    await works.run(KIND, **{"from": "1970-01-03", "to": "1970-01-03"})
    days = [row[7] for row in await works.counted() if row[2] == DAY_MS]
    assert days == [4.0, 4.5]
    assert await works.rows("SELECT DISTINCT value FROM readings") == [(4.0,)]


async def test_half_a_range_is_told(works: Works) -> None:
    told = await works.refused(KIND, **{"from": "1970-01-03"})
    assert told == "args of reprocess_readings: from and to go together: give both, or neither"
