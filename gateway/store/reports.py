"""Reads for a report of a day: device by device, a bounded piece at a time.

There is no index of readings by time. The aggregates know where in the order of arrival the
readings of an hour are, which is as good; what they have not counted yet is looked through.
"""

import sqlite3
from collections.abc import AsyncIterator
from typing import NamedTuple

from gateway.store import aggregates, queries
from gateway.store.database import Database

_sql = queries.load("reports")

_ROWS = 2000


class Device(NamedTuple):
    """A device. `missing`: numbers that were found missing that day and have not come since."""

    id: int
    name: str
    is_known: bool  # before the day ended
    missing: int
    sensors: dict[int, str]
    arrivals: list[tuple[int, int]]  # (after, upto]: where its readings of the day are


class Window(NamedTuple):
    """The day, and the state of the readings that is reported: up to arrival `newest`."""

    from_ms: int
    to_ms: int
    counted: int
    newest: int


async def window(db: Database, from_ms: int, to_ms: int) -> Window:
    counted = await aggregates.cursor(db)
    newest = await db.one(_sql.newest)
    assert newest is not None
    return Window(from_ms, to_ms, counted, newest["id"])


async def count_devices(db: Database) -> int:
    row = await db.one(_sql.count_devices)
    assert row is not None
    count: int = row["count"]
    return count


async def devices(db: Database, of: Window) -> AsyncIterator[Device]:
    """Yield the devices in order of name."""
    after = ""
    while rows := await db.all(_sql.devices, {"after": after, "rows": _ROWS}):
        for row in rows:
            yield await _device(db, of, row)
        after = rows[-1]["name"]


async def readings(db: Database, of: Window, device: Device) -> AsyncIterator[sqlite3.Row]:
    """Yield the device's readings of the day, in order of arrival."""
    for after, end in device.arrivals:
        told = {"device_id": device.id, "after": after, "end": end, "rows": _ROWS}
        while rows := await db.all(_sql.readings_of_device, told):
            for row in rows:
                if of.from_ms <= row["at_ms"] < of.to_ms:
                    yield row
            told["after"] = rows[-1]["id"]


async def _device(db: Database, of: Window, row: sqlite3.Row) -> Device:
    told = {"device_id": row["id"], "from_ms": of.from_ms, "to_ms": of.to_ms}
    sensors = await db.all(_sql.sensors_of_device, told)
    missing = await db.one(_sql.missing, told)
    assert missing is not None
    counted = [each for each in sensors if each["first_arrival"] is not None]
    arrivals = []
    if counted:
        first = min(each["first_arrival"] for each in counted)
        last = max(each["last_arrival"] for each in counted)
        arrivals.append((first - 1, min(last, of.counted)))
    if of.counted < of.newest:
        arrivals.append((of.counted, of.newest))
    names = {each["id"]: each["name"] for each in sensors}
    is_known = row["added_at_ms"] < of.to_ms
    return Device(row["id"], row["name"], is_known, missing["missing"], names, arrivals)
