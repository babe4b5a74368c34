"""Tells systemd that the gateway is ready, alive and stopping; silent where there is no systemd.

https://www.freedesktop.org/software/systemd/man/sd_notify.html: a datagram to the socket that
`NOTIFY_SOCKET` names, with `WATCHDOG=1` oftener than every `WATCHDOG_USEC` microseconds.
"""

import asyncio
import logging
import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from gateway.errors import Unavailable
from gateway.store.database import Database

log = logging.getLogger(__name__)

_AGAIN_S = 0.25


@asynccontextmanager
async def supervised(database: Database, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Say ready, feed the watchdog inside the block, and say stopping at its end."""
    place = environ.get("NOTIFY_SOCKET", "")
    if not place:
        yield
        return
    tell(place, "READY=1")
    feeding = asyncio.create_task(_feed(database, place, _period_s(environ)))
    try:
        yield
    finally:
        tell(place, "STOPPING=1")
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


def tell(place: str, what: str) -> None:
    """Send one datagram; what can not be sent is told of, for nothing here depends on it."""
    address = "\0" + place[1:] if place.startswith("@") else place
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.setblocking(False)
            client.sendto(what.encode(), address)
    except OSError as error:
        log.warning("systemd could not be told %s: %s", what, error)


def _period_s(environ: Mapping[str, str]) -> float | None:
    """Return after how long without a sign this process is killed; None: never."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    with suppress(ValueError):
        return int(environ.get("WATCHDOG_USEC", "")) / 1_000_000 or None
    return None


async def _feed(database: Database, place: str, period_s: float | None) -> None:
    """Feed the watchdog from this loop, each time that the writer has answered.

    What it is asked is a transaction that changes nothing, so it costs the disk nothing.
    """
    while period_s is not None:
        try:
            await database.write(lambda connection: None)
        except (Unavailable, sqlite3.Error):
            await asyncio.sleep(_AGAIN_S)  # no answer of the writer, or none that says it works
            continue
        tell(place, "WATCHDOG=1")
        await asyncio.sleep(period_s / 3)
