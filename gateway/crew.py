"""The crew: what works behind the front. Workers, reaper, aggregator, schedule, watcher of alarms.

Each is a loop of its own. One that breaks is told of and begun again, for the others, and the
front, must not end with it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from gateway import tables
from gateway.aggregate import Aggregator
from gateway.alarm_notices import Notices
from gateway.alarms import Surroundings, Watcher
from gateway.config import Config
from gateway.events import Bus
from gateway.handlers import REGISTRY
from gateway.pool import Pool
from gateway.reaper import Keep, Reaper
from gateway.retention import Retention
from gateway.schedule import Schedule
from gateway.store.clock import Instant, machine_boot
from gateway.store.database import Database
from gateway.upkeep import Upkeep

log = logging.getLogger(__name__)

AGAIN_S = 5.0

Loop = Callable[[], Awaitable[object]]


class Crew:
    """The loops over one database, until `stopping` is set.

    Args:
        is_front: also do what one process does for all: aggregates, schedule and alarms.
        registry: `module:function` that returns the kinds.
        bus: is told what is done, for whoever watches.

    Raises:
        Misconfigured: a schedule or a notice of alarms asks for what there is not.
    """

    def __init__(
        self,
        config: Config,
        database: Database,
        *,
        is_front: bool,
        registry: str = REGISTRY,
        bus: Bus | None = None,
    ) -> None:
        bus = bus or Bus()
        boot = machine_boot()

        def now() -> Instant:
            return Instant.now(boot)

        self.pool = Pool(
            database, registry, config.for_jobs(), workers=config.workers, now=now, bus=bus
        )
        keep = Keep(config.keep_done_days, config.keep_failed_days, config.keep_events_days)
        reaper = Reaper(database, self.pool.queue, now, keep=keep, wake=self.pool.wake, bus=bus)
        self._loops: list[Loop] = [reaper.run]
        if is_front:
            schedule = Schedule(
                database,
                self.pool.queue,
                self.pool.kinds,
                config.schedule,
                wake=self.pool.wake,
                bus=bus,
            )
            aggregator = Aggregator(database, config.for_jobs())
            notices = Notices(
                config.alarms.notify, self.pool.queue, self.pool.kinds, config.smtp is not None
            )
            watcher = Watcher(
                database,
                config.alarms,
                now,
                Surroundings(config.folder, config.min_free_bytes),
                notices=notices,
                bus=bus,
                wake=self.pool.wake,
                keep_days=config.keep_events_days,
            )
            retention = Retention(
                database,
                config.retention or tables.Retention(),
                now,
                folder=config.folder,
                reports_days=config.keep_done_days,
            )
            self._loops += [schedule.run, aggregator.run, watcher.run, retention.run]
            if config.folder is not None:
                self._loops.append(Upkeep(config.db, lambda: now().wall_ms).run)
        self._drain_s = config.drain_timeout_s

    @asynccontextmanager
    async def at_work(self, stopping: asyncio.Event) -> AsyncIterator[None]:
        """Work inside the block; from `stopping` on no job is taken and the rest is drained.

        On the way out all jobs have ended or were given back.
        """
        working = asyncio.create_task(self._again(self.pool.run))
        draining = asyncio.create_task(self._drain(stopping))
        loops = [asyncio.create_task(self._again(loop)) for loop in self._loops]
        try:
            yield
        finally:
            if not stopping.is_set():  # something else went wrong
                draining.cancel()
                await self.pool.stop(0)
            await asyncio.gather(draining, return_exceptions=True)
            await working
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)

    async def _drain(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        await self.pool.stop(self._drain_s)

    async def _again(self, loop: Loop) -> None:
        while True:
            try:
                await loop()
                return
            except Exception:
                log.exception("a part of the gateway broke; it begins again in %g s", AGAIN_S)
            await asyncio.sleep(AGAIN_S)
