"""What the command line does to a database, whether a gateway runs on it or not."""

import re
import secrets
from pathlib import Path

from gateway import links, master
from gateway.app import now_ms
from gateway.config import Config
from gateway.errors import Misconfigured
from gateway.keys import Keys
from gateway.opening import database
from gateway.store import alarms, devices, sessions

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TOKEN_BYTES = 32
_BY = "the command line"
_UNKNOWN = "{} has nothing of that kind here: `devices list` shows who has what"


async def add(config: Config, name: str) -> str:
    """Register the device and return its key, 64 hex digits; the same again changes nothing.

    Raises:
        Misconfigured: not a name for a device, or a database that can not be used.
    """
    _refuse_unfit(config, name)
    async with database(config) as db:
        keys = await master.keys_of(config, db)
        generation = await devices.register(db, name, now_ms())
        return keys.device_key(name, generation).hex()


async def rotate(config: Config, name: str) -> str:
    """Return a new key of the device; the old one is void when the board first uses this.

    Raises:
        Misconfigured: it has no key that could be renewed; or as `add`.
    """
    _refuse_missing(config)
    async with database(config) as db:
        keys = await master.keys_of(config, db)
        generation = await devices.rotate(db, name)
        if generation is None:
            raise Misconfigured(f"{name} has no key to renew: `devices add {name}` gives it one")
        return keys.device_key(name, generation).hex()


async def accept_key(config: Config) -> int:
    """Take the master key that stands there, or a new one, for that of devices' keys from now on.

    Return how many devices need a new key now.

    Raises:
        Misconfigured: there is no such database, or the file holds no key.
    """
    _refuse_missing(config)
    async with database(config) as db:
        await master.accept(db, Keys.open(config.folder))
        return await devices.count_keyed(db)


async def give_bearer(config: Config, name: str) -> str:
    """Return a new token of the device, for a client that can not sign; the old one is void.

    Raises:
        Misconfigured: as `add`.
    """
    _refuse_unfit(config, name)
    token = secrets.token_hex(_TOKEN_BYTES)
    async with database(config) as db:
        await devices.give_bearer(db, name, sessions.hashed(token), now_ms())
    return token


async def let_ask(config: Config, name: str, may: bool) -> None:
    """Let the device ask for jobs, or no longer. Raises Misconfigured: there is no such device."""
    _refuse_missing(config)
    async with database(config) as db:
        if not await devices.let_ask(db, name, may):
            raise Misconfigured(_UNKNOWN.format(name))


async def revoke(config: Config, name: str) -> None:
    """Make keys and token of the device void. Raises Misconfigured: it has none."""
    _refuse_missing(config)
    async with database(config) as db:
        if not await devices.revoke(db, name):
            raise Misconfigured(_UNKNOWN.format(name))


async def revoke_bearer(config: Config, name: str) -> None:
    """Make the token of the device void. Raises Misconfigured: it has none."""
    _refuse_missing(config)
    async with database(config) as db:
        if not await devices.revoke_bearer(db, name):
            raise Misconfigured(_UNKNOWN.format(name))


async def login_link(config: Config) -> str:
    """Return the path of a link that logs an operator's browser in, once, within 10 minutes.

    Raises:
        Misconfigured: there is no such database, or it can not be used.
    """
    _refuse_missing(config)
    async with database(config) as db:
        return links.path(await sessions.make_link(db, now_ms()))


async def log_everybody_out(config: Config) -> int:
    """End the sessions of all browsers; return how many. Raises Misconfigured."""
    _refuse_missing(config)
    async with database(config) as db:
        return await sessions.log_everybody_out(db)


async def everybody(config: Config) -> list[dict[str, object]]:
    """Return of each device name, generation of its key, added_at_ms, last_seen_at_ms,
    next_generation (of a key that was renewed and is not used yet), has_bearer and may_ask.

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
    """Close an open alarm; return False if there is none of that id.

    Raises:
        Misconfigured: it closes by itself when it is over; or as `open_alarms`.
    """
    _refuse_missing(config)
    async with database(config) as db:
        try:
            return await db.write(lambda c: alarms.close_alarm(c, alarm_id, now_ms(), _BY))
        except alarms.NotClosable:
            raise Misconfigured(
                f"alarm {alarm_id} closes by itself, when what it says is no longer true"
            ) from None


async def acknowledge_alarm(config: Config, alarm_id: int, note: str) -> bool:
    """Note that somebody knows of it; return False if it is not open. Raises Misconfigured."""
    _refuse_missing(config)
    async with database(config) as db:
        return await db.write(lambda c: alarms.acknowledge(c, alarm_id, now_ms(), _BY, note))


def _refuse_unfit(config: Config, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Misconfigured(f"{name!r} is no name for a device: 1 to 64 of A-Z a-z 0-9 _ . -")
    if config.folder is None:
        raise Misconfigured("a device in memory is gone when this ends: give the file with --db")


def _refuse_missing(config: Config) -> None:
    if not Path(config.db).exists():  # a slip in the path must not make a new one
        raise Misconfigured(f"there is no database {config.db}; `serve` or `devices add` makes it")
