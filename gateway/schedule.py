"""The schedule: asks for the periodic jobs of the configuration, each slot once.

A plain loop over the wall clock, every second; it keeps no plan that a step of the clock could
spoil. On the nights when the clocks change, cronsim does as Debian's cron: what is due in the hour
that is left out comes right after it, what is due in the hour that comes twice comes once.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from gateway.errors import Misconfigured, Unavailable
from gateway.events import Bus, JobAdded
from gateway.kinds import Kinds
from gateway.outcomes import Permanent
from gateway.store import slots
from gateway.store.database import Database
from gateway.store.jobs import Asked, Queue
from gateway.store.slots import Due
from gateway.tables import Periodic

log = logging.getLogger(__name__)

LOOK_S = 1.0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Plan(NamedTuple):
    """A periodic job whose words are known to mean something."""

    periodic: Periodic
    zone: ZoneInfo

    @property
    def request_id(self) -> str:
        """Return who is said to have asked."""
        return f"schedule:{self.periodic.name}"

    def newest(self, now_ms: int) -> datetime | None:
        """Return the newest slot that is not after `now_ms`, None if there never was one."""
        # The odd microsecond makes the present second count.
        now = datetime.fromtimestamp(now_ms // 1000, self.zone).replace(microsecond=1)
        return next(CronSim(self.periodic.cron, now, reverse=True), None)

    def args(self, slot: datetime) -> str:
        """Return the args for a slot: `{date}` and `{day_before}` are the slot's, where it is."""
        day = slot.date()
        words = {"{date}": day.isoformat(), "{day_before}": (day - timedelta(1)).isoformat()}
        args = {
            key: words.get(value, value) if isinstance(value, str) else value
            for key, value in self.periodic.args.items()
        }
        return msgspec.json.encode(args).decode()


def plan(schedule: Sequence[Periodic], kinds: Kinds) -> list[Plan]:
    """Return the plans.

    Raises:
        Misconfigured: there is no such kind, zone or time, or the kind does not take these args.
    """
    return [_plan(periodic, kinds) for periodic in schedule]


def zone(name: str) -> ZoneInfo:
    """Return the time zone. Raises LookupError: there is none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise LookupError(f"there is no time zone {name!r}") from None


def _plan(periodic: Periodic, kinds: Kinds) -> Plan:
    def wrong(what: str) -> Misconfigured:
        return Misconfigured(f"schedule {periodic.name}: {what}")

    kind = kinds.get(periodic.kind)
    if kind is None:
        there_are = ", ".join(sorted(kinds)) or "none"
        raise wrong(f"there is no kind of job called {periodic.kind!r}; there are: {there_are}")
    try:
        found = Plan(periodic, zone(periodic.time_zone))
        slot = found.newest(_now_ms())
        kind.decode(found.args(slot or datetime.now(found.zone)))
    except LookupError as error:
        raise wrong(str(error)) from None
    except CronSimError as error:
        raise wrong(f"cron {periodic.cron!r} can not be read: {error}") from None
    except Permanent as error:
        raise wrong(str(error)) from None
    return found


class Schedule:
    """The loop. Several processes may run it on one file.

    Args:
        wake: called when a job was added.
        bus: is told of each.

    Raises:
        Misconfigured: see `plan`.
    """

    def __init__(
        self,
        database: Database,
        queue: Queue,
        kinds: Kinds,
        schedule: Sequence[Periodic],
        *,
        wake: Callable[[], None] = lambda: None,
        now_ms: Callable[[], int] = _now_ms,
        bus: Bus | None = None,
    ) -> None:
        self._database = database
        self._queue = queue
        self._plans = plan(schedule, kinds)
        self._wake = wake
        self._now_ms = now_ms
        self._bus = bus or Bus()
        self._seen: dict[str, int] = {}  # the newest slot we asked for, so as not to ask again

    async def run(self) -> None:
        """Look every second until cancelled."""
        kept = [one.periodic.name for one in self._plans]
        await self._database.write(lambda c: slots.forget_others(c, kept))
        while self._plans:
            try:
                await self.run_once()
            except (Unavailable, sqlite3.Error) as error:
                log.warning("the schedule has to wait: %s", error)
            await asyncio.sleep(LOOK_S)

    async def run_once(self) -> list[int]:
        """Ask for what is due; return the ids of the jobs."""
        added = []
        for one in self._plans:
            slot = one.newest(self._now_ms())
            if slot is None:
                continue
            slot_ms = int(slot.timestamp() * 1000)  # a local time may come twice
            if self._seen.get(one.periodic.name) == slot_ms:
                continue
            job_id = await self._ask(one, slot, slot_ms)
            self._seen[one.periodic.name] = slot_ms
            if job_id is not None:
                self._bus.publish(JobAdded(job_id, one.periodic.kind, one.request_id))
                added.append(job_id)
        if added:
            self._wake()
        return added

    async def _ask(self, one: Plan, slot: datetime, slot_ms: int) -> int | None:
        periodic, now_ms = one.periodic, self._now_ms()
        due = Due(periodic.name, f"{periodic.cron} {periodic.time_zone}", slot_ms)
        asked = Asked(periodic.kind, one.args(slot), request_id=one.request_id, caller="schedule")
        return await self._database.write(
            lambda c: slots.take(c, due, now_ms, lambda: self._queue.enqueue(c, asked, now_ms)[0])
        )
