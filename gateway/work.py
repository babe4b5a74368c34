"""A process that only does jobs, beside the gateway or others of its kind, on the same file.

It knows nothing of the web side, and loads nothing of it.
"""

import logging

from gateway import move_log, stopping
from gateway.config import MEMORY, Config
from gateway.crew import Crew
from gateway.errors import Misconfigured
from gateway.events import Bus
from gateway.handlers import REGISTRY
from gateway.opening import database

log = logging.getLogger(__name__)


async def work(config: Config, registry: str = REGISTRY) -> int:
    """Do jobs of the database until a signal stops it; return the exit code.

    Args:
        registry: `module:function` that returns the kinds.

    Raises:
        Misconfigured: it can not work like this.
    """
    if config.db == MEMORY:
        raise Misconfigured(
            "a database in memory is seen by its own process only: give --db a file"
        )
    if not config.workers:
        raise Misconfigured(f"{config.came_from('workers')} is 0: then there is nothing to do here")
    stop = stopping.on_signals()
    bus = Bus()
    bus.subscribe(move_log.watch)
    async with database(config) as db:
        crew = Crew(config, db, is_front=False, registry=registry, bus=bus)
        async with crew.at_work(stop):
            print(f"fieldpost: {config.workers} workers do the jobs of {config.db}", flush=True)
            await stop.wait()
            log.info("stopping; jobs under way have %g s", config.drain_timeout_s)
    return 0
