"""Reads of devices and their sensors for the pages: short, each of few rows."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from gateway.store import queries
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.database import Database
from gateway.tables import Alarms

MOST_GAPS = 20  # of one device
MOST_SENSORS = 6  # of one device in the list of all
# Rows that a statement looks at beside those it returns; what lies beyond is left out.
_SCAN = 20_000
_MOST_SPANS = 20_000

Rule = Mapping[str, object]
_LONGEST_LEARNED_MS = 24 * 3600 * 1000

_sql = queries.load("pages")


@dataclass
class Sensor:
    """A sensor and its newest aggregates that hold a number, in order.

    Each has from_ms, count, mean, min, max, last_value, last_at_ms and last_arrival.
    """

    id: int
    name: str
    spans: list[sqlite3.Row] = field(default_factory=list)
    unit: str | None = None


@dataclass
class Device:
    """A row of `devices_of_page` and what belongs to it."""

    row: sqlite3.Row
    boots: int
    gaps: list[dict[str, int]]
    missing: int
    lost: int
    sensors: list[Sensor]


def rule_of_intervals(settings: Alarms) -> Rule:
    """Return how often a device is expected, as the statements take it: as its alarm has it."""
    configured = {name: int(1000 * every_s) for name, every_s in settings.interval_s.items()}
    return {
        "shortest_ms": int(settings.shortest_interval_s * 1000),
        "heartbeat_ms": int(settings.heartbeat_s * 1000),
        "longest_learned_ms": _LONGEST_LEARNED_MS,
        "configured": msgspec.json.encode(configured).decode(),
    }


async def listed(db: Database, rule: Rule, limit: int, offset: int, from_ms: int) -> list[Device]:
    """Return devices, those in trouble first, with their hours since `from_ms`.

    Args:
        rule: how often one is expected, see `rule_of_intervals`.
    """
    told = {"limit": limit, "offset": offset, "scan": _SCAN}
    rows = await db.all(_sql.devices_of_page, {**told, **rule})
    return await _devices(db, rows, MOST_SENSORS, from_ms)


async def one(db: Database, rule: Rule, name: str, sensors: int, from_ms: int) -> Device | None:
    """Return the device of that name with at most so many sensors, None if there is none."""
    rows = await db.all(_sql.device_of_page, {"name": name, **rule})
    found = await _devices(db, rows, sensors, from_ms)
    return found[0] if found else None


async def sensor(db: Database, sensor_id: int) -> sqlite3.Row | None:
    """Return id, name and device (its name) of a sensor."""
    return await db.one(_sql.sensor, {"id": sensor_id})


async def spans(
    db: Database, sensors: list[Sensor], span_ms: int, from_ms: int, to_ms: int
) -> None:
    """Give each sensor its aggregates that begin in [from_ms, to_ms), and its unit.

    Args:
        span_ms: of an hour or a day.
    """
    told = {"ids": _json(one.id for one in sensors), "span_ms": span_ms, "from_ms": from_ms,
            "to_ms": to_ms, "limit": _MOST_SPANS}  # fmt: skip
    by_id = {one.id: one for one in sensors}
    for row in await db.all(_sql.spans_of_sensors, told):
        by_id[row["sensor_id"]].spans.append(row)
    newest = {one.spans[-1]["last_arrival"]: one for one in sensors if one.spans}
    for row in await db.all(_sql.units, {"arrivals": _json(newest)}):
        newest[row["id"]].unit = row["unit"]


async def newest_readings(db: Database, device_id: int, limit: int) -> list[sqlite3.Row]:
    return await db.all(_sql.newest_readings_of_device, {"device_id": device_id, "limit": limit})


async def quarantined(db: Database, device: str, limit: int) -> list[sqlite3.Row]:
    """Return reading_id, reason, body and received_at_ms of the newest in quarantine."""
    return await db.all(_sql.quarantine_of_device, {"device": device, "limit": limit})


async def _devices(
    db: Database, rows: list[sqlite3.Row], sensors: int, from_ms: int
) -> list[Device]:
    ids = _json(row["id"] for row in rows)
    gaps = await _grouped(db, _sql.gaps_of_page, {"ids": ids, "scan": _SCAN, "limit": MOST_GAPS})
    boots = await _grouped(db, _sql.boots_of_page, {"ids": ids, "scan": _SCAN})
    lost = await _grouped(db, _sql.lost_of_page, {"ids": ids, "scan": _SCAN})
    found = await _grouped(db, _sql.sensors_of_page, {"ids": ids, "limit": sensors})
    by_device = {id_: [Sensor(r["id"], r["name"]) for r in these] for id_, these in found.items()}
    every = [one for these in by_device.values() for one in these]
    await spans(db, every, HOUR_MS, from_ms, from_ms + 2 * DAY_MS)
    return [
        Device(
            row,
            boots[row["id"]][0]["boots"] if boots[row["id"]] else 0,
            [{"from": gap["first"], "to": gap["last"]} for gap in gaps[row["id"]]],
            gaps[row["id"]][0]["missing"] if gaps[row["id"]] else 0,
            lost[row["id"]][0]["lost"] if lost[row["id"]] else 0,
            by_device.get(row["id"], []),
        )
        for row in rows
    ]


async def _grouped(
    db: Database, sql: str, told: Mapping[str, object]
) -> defaultdict[int, list[sqlite3.Row]]:
    grouped: defaultdict[int, list[sqlite3.Row]] = defaultdict(list)
    for row in await db.all(sql, told):
        grouped[row["device_id"]].append(row)
    return grouped


def _json(numbers: Iterable[int]) -> str:
    return msgspec.json.encode(list(numbers)).decode()
