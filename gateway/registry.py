"""Registering boards from the command line, whether a gateway runs on the database or not."""

import re
from pathlib import Path

from gateway.app import database, now_ms
from gateway.config import Config
from gateway.errors import Misconfigured
from gateway.keys import Keys
from gateway.store import devices, roster

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
        keys = Keys.open(config.folder)
        generation = await devices.register(db, name, now_ms())
        return keys.device_key(name, generation).hex()


async def everybody(config: Config) -> list[dict[str, object]]:
    """Return each device's name, generation of its key, added_at_ms and last_seen_at_ms.

    Raises:
        Misconfigured: there is no such database, or it can not be used.
    """
    _refuse_missing(config)
    async with database(config) as db:
        return [dict(row) for row in await roster.everybody(db)]


def _refuse_missing(config: Config) -> None:
    if not Path(config.db).exists():  # a slip in the path must not make a new one
        raise Misconfigured(f"there is no database {config.db}; `serve` or `devices add` makes it")
