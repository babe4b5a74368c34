"""Waits and leases that survive a step of the wall clock.

They are written as wall instants, so that people and other processes can read them, but they are
lengths of time. Whoever is first to see that the wall clock was stepped against the machine's
monotonic clock moves them along, once for each step: the row `clock` guards that.
"""

import sqlite3
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gateway.store import queries

_sql = queries.load("jobs")
STEP_MS = 1000  # less is slewing, and rounding

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # Linux; random(4)


@cache
def machine_boot() -> str:
    """Return what tells apart two starts of this machine; empty where nothing does."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def here() -> "Instant":
    """Return now, by the clocks of this machine."""
    return Instant.now(machine_boot())


class Instant(NamedTuple):
    """Now, by both clocks: ms of the Unix epoch, and what that is ahead of the monotonic clock."""

    wall_ms: int
    offset_ms: int
    machine_boot: str = ""

    @classmethod
    def now(cls, machine_boot: str = "") -> "Instant":
        wall_ms = time.time_ns() // 1_000_000
        return cls(wall_ms, wall_ms - time.monotonic_ns() // 1_000_000, machine_boot)

    def settle(self, connection: sqlite3.Connection) -> int:
        """Move leases, waits and deadlines if the wall clock was stepped; return by how many ms.

        After a restart of the machine the monotonic clock has begun anew and says nothing; but
        then no worker of before is alive, and every lease is over.
        """
        row = connection.execute(_sql.clock).fetchone()
        if row is not None and row[0] == self.machine_boot:
            step_ms = self.offset_ms - int(row[1])
            if abs(step_ms) < STEP_MS:
                return 0
            connection.execute(_sql.move_leases, (step_ms,))
            connection.execute(_sql.move_waits, (step_ms,))
            connection.execute(_sql.move_deadlines, (step_ms,))
        else:
            step_ms = 0
            connection.execute(_sql.end_leases)
        told = {"machine_boot": self.machine_boot, "offset_ms": self.offset_ms}
        connection.execute(_sql.set_clock, told)
        return step_ms
