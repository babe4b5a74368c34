"""The watcher: looks every few seconds whether something is true that a person should know.

A plain task, as the reaper. It reads with the readers, a bounded piece at a time, and writes only
when something changed: what it found, and the jobs that tell of it, in one transaction.
"""

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gateway.alarm_notices import Notices
from gateway.device_rules import DeviceRules
from gateway.errors import Unavailable
from gateway.events import AlarmClosed, AlarmOpened, Bus
from gateway.gateway_rules import (
    ClockRule,
    DiskRule,
    GapRule,
    QueueRule,
    failed_jobs,
    quiet,
)
from gateway.silence import Silence
from gateway.store import alarm_changes, alarms
from gateway.store.alarm_changes import Change, ClockStepped
from gateway.store.alarms import Open
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.tables import Alarms

log = logging.getLogger(__name__)

_PRUNE_EVERY_MS = 60_000
_DAY_MS = 24 * 3600 * 1000
# A look that comes later than this found the process stopped or starved: nobody was heard then.
_LATE_LOOKS = 5
_LATE_MS = 5000


@dataclass(frozen=True)
class Surroundings:
    """What the watcher looks at beside the database.

    Args:
        folder: of the database; None in memory.
        floor_bytes: of free space, below which no reading is taken.
    """

    folder: Path | None = None
    floor_bytes: int = 0
    free_bytes: Callable[[Path], int] = field(default=lambda folder: shutil.disk_usage(folder).free)


class Watcher:
    """Opens and closes alarms. One for each database.

    Args:
        now: by both clocks.
        notices: asks for mail and webhooks; None: nobody is told.
        bus: is told what opened and closed.
        wake: called when a job was added.
    """

    def __init__(
        self,
        database: Database,
        settings: Alarms,
        now: Callable[[], Instant],
        around: Surroundings = Surroundings(),
        *,
        notices: Notices | None = None,
        bus: Bus | None = None,
        wake: Callable[[], None] = lambda: None,
        keep_days: float = 30,
    ) -> None:
        self._database = database
        self._settings = settings
        self._now = now
        self._around = around
        self._notices = notices
        self._bus = bus or Bus()
        self._wake = wake
        self._keep_ms = int(keep_days * _DAY_MS)
        started_ms = _monotonic_ms(now())
        self._silence = Silence(settings, started_ms)
        self._of_devices = DeviceRules(self._silence)
        self._of_gaps = GapRule(settings.gap_after_s)
        self._of_queue = QueueRule(settings.stalled_after_s)
        least = max(settings.disk_low_bytes, around.floor_bytes)
        self._of_disk = DiskRule(around.folder, least, around.free_bytes)
        self._of_clock = ClockRule(settings.clock_step_s)
        self._looked_ms = started_ms
        self._prune_at_ms = started_ms
        self._owed: list[Change] = []  # steps of the clock that could not be written yet
        self._told: set[tuple[int, str, str]] | None = None  # open ones that the bus knows of

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.run_once()
            except (Unavailable, sqlite3.Error) as error:
                log.warning("the alarms have to wait: %s", error)
            await asyncio.sleep(self._settings.look_s)

    async def run_once(self) -> None:
        """Look once, write what changed, tell it."""
        now = self._now()
        now_ms = _monotonic_ms(now)
        self._pass_time(now_ms)
        open_ = await alarms.every_open(self._database)
        self._tell(open_)
        self._owed += self._of_clock.look(now.offset_ms)
        changes = [*self._owed, *await self._conditions(now, now_ms, open_)]
        if changes or self._has_untold(open_):
            added = await self._database.write(lambda c: self._write(c, changes, now.wall_ms))
            self._owed.clear()
            if added:
                self._wake()
            self._tell(await alarms.every_open(self._database))
        if now_ms >= self._prune_at_ms:
            self._prune_at_ms = now_ms + _PRUNE_EVERY_MS
            await self._prune(now.wall_ms)

    def _pass_time(self, now_ms: int) -> None:
        """Count no silence for a time in which this process could hear nobody."""
        since_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        look_ms = int(self._settings.look_s * 1000)
        if not self._has_room():
            self._silence.pause(since_ms)
        elif since_ms > _LATE_LOOKS * look_ms + _LATE_MS:
            self._silence.pause(since_ms - look_ms)

    def _has_room(self) -> bool:
        if self._around.folder is None:
            return True
        try:
            return self._around.free_bytes(self._around.folder) >= self._around.floor_bytes
        except OSError:
            return False

    async def _conditions(
        self, now: Instant, now_ms: int, open: dict[tuple[str, str], Open]
    ) -> list[Change]:
        db = self._database
        # What was quiet for how long is written in the clock of before the step.
        has_stepped = any(isinstance(one, ClockStepped) for one in self._owed)
        return [
            *await self._of_devices.look(db, now_ms, now.wall_ms, open),
            *await self._of_gaps.look(db, now_ms, open),
            *await self._of_queue.look(db, now_ms, now.wall_ms, open),
            *await failed_jobs(db, open),
            *self._of_disk.look(open),
            *([] if has_stepped else quiet(open.values(), now.wall_ms, self._settings.quiet_h)),
        ]

    def _has_untold(self, open: dict[tuple[str, str], Open]) -> bool:
        wanted = self._notices is not None and self._notices.are_wanted
        return wanted and any(one.told_at_ms is None for one in open.values())

    def _write(self, connection: sqlite3.Connection, changes: list[Change], now_ms: int) -> int:
        alarm_changes.write(connection, changes, now_ms)
        return self._notices.ask(connection, now_ms) if self._notices else 0

    def _tell(self, open: dict[tuple[str, str], Open]) -> None:
        """Tell the bus what opened and closed, by whomever, since it was told last."""
        now = {(one.id, one.kind, one.subject) for one in open.values()}
        before, self._told = self._told, now
        if before is None:
            return
        for _, kind, subject in sorted(now - before):
            log.warning("alarm: %s %s", kind, subject)
            self._bus.publish(AlarmOpened(kind, subject))
        for _, kind, subject in sorted(before - now):
            log.info("alarm is over: %s %s", kind, subject)
            self._bus.publish(AlarmClosed(kind, subject))

    async def _prune(self, wall_ms: int) -> None:
        before_ms = wall_ms - self._keep_ms
        while await self._database.write(lambda c: alarms.prune(c, before_ms)):
            pass


def _monotonic_ms(now: Instant) -> int:
    return now.wall_ms - now.offset_ms
