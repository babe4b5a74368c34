"""What the command line does to a database, whether a gateway runs on it or not."""

import re
from pathlib import Path

from gateway.app import now_ms, open_keys
from gateway.config import Config
from gateway.errors import Misconfigured
from gateway.opening import database
from gateway.store import alarms, devices

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


async def add(config: Config, name: str) -> str:
    """Register the device and return its key, 64 hex digits; the same again changes nothing.

    Raises:
        Misconfigured: not a name for a device, or a database that can not be used.
    """
    if not _NAME.fullmatch(name):
        raise Misconfigured(f"{name!r} is no name for a device: 1 to 64 of A-Z a-z 0-9 _ . -")
    if config.folder is None:
        raise Misconfigured("a device in memory is gone when this ends: give the file with --db")
    async with database(config) as db:
        keys = open_keys(config, await devices.count_keyed(db))
        generation = await devices.register(db, name, now_ms())
        return keys.device_key(name, generation).hex()


async def everybody(config: Config) -> list[dict[str, object]]:
    """Return each device's name, generation of its key, added_at_ms and last_seen_at_ms.

    Raises:
        Misconfigured: there is no such database, or it can not be used.
    """
    _refuse_missing(config)
    async with database(config) as db:
        return [dict(row) for row in await devices.everybody(db)]


async def open_alarms(config: Config) -> list[dict[str, object]]:
    """Return id, kind, subject, detail and opened_at_ms of each open alarm.

    Raises:
        Misconfigured: there is no such database, or it can not be used.
    """
    _refuse_missing(config)
    async with database(config) as db:
        return [dict(row) for row in await alarms.list_open(db)]


async def close_alarm(config: Config, alarm_id: int) -> bool:
    """Close an open alarm; return False if there is none of that id. Raises Misconfigured."""
    _refuse_missing(config)
    async with database(config) as db:
        return await db.write(lambda c: alarms.close_alarm(c, alarm_id, now_ms()))


def _refuse_missing(config: Config) -> None:
    if not Path(config.db).exists():  # a slip in the path must not make a new one
        raise Misconfigured(f"there is no database {config.db}; `serve` or `devices add` makes it")
