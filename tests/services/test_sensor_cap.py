"""The readings of one sensor too many are set aside; those of the others go in."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.decode import decode
from gateway.model import Batch, Delivery, Verdicts
from gateway.sensor_cap import REASON, SensorCap
from gateway.store.database import Database
from gateway.store.readings import store


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(str(tmp_path / "f.db"))
    yield database
    await database.close()


def batch(*sensors: str, first: int = 1, device: str = "d") -> Batch:
    readings = [
        {"id": f"{device}-7f3a17c212-{n}", "sensor": sensor, "value": n}
        for n, sensor in enumerate(sensors, start=first)
    ]
    return decode(json.dumps({"device": device, "readings": readings}).encode())


async def deliver(database: Database, cap: SensorCap, sent: Batch) -> Verdicts:
    await cap.judge(sent)
    return await database.write_together(store, Delivery(sent, 1))


async def test_a_sensor_too_many_costs_its_own_readings_only(database: Database) -> None:
    told = await deliver(database, SensorCap(database, 2), batch("c", "a", "b", "a", "c"))
    assert told.stored == 3
    assert [(one.index, one.reason) for one in told.rejected] == [(0, REASON), (4, REASON)]
    rows = await database.all("SELECT reading_id, body FROM quarantine ORDER BY reading_id")
    assert [row["reading_id"] for row in rows] == ["d-7f3a17c212-1", "d-7f3a17c212-5"]
    assert json.loads(rows[0]["body"])["sensor"] == "c"


async def test_sensors_that_a_device_has_already_are_never_refused(database: Database) -> None:
    await deliver(database, SensorCap(database, 3), batch("a", "b", "c"))
    lower = SensorCap(database, 1)
    assert (await deliver(database, lower, batch("c", "a", first=4))).stored == 2
    assert (await deliver(database, lower, batch("d", first=6))).stored == 0


async def test_each_device_has_a_count_of_its_own(database: Database) -> None:
    cap = SensorCap(database, 1)
    assert (await deliver(database, cap, batch("a"))).stored == 1
    assert (await deliver(database, cap, batch("b", device="e"))).stored == 1


async def test_a_sensor_whose_readings_were_never_stored_takes_up_no_place(
    database: Database,
) -> None:
    cap = SensorCap(database, 1)
    await cap.judge(batch("lost"))  # the disk was full then
    assert (await deliver(database, cap, batch("a"))).stored == 1
