"""The books of one board from both sides: what it took, and what became of it, by sets of ids."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.flash_bed import Board, Flash

OUTBOX = "outbox.d"  # as device/main.py names it
_ALL = 1 << 30


@dataclass
class Trace:
    """What a board said it did: ids by event."""

    taken: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    waits_ms: list[int] = field(default_factory=list)
    starts: int = 0

    @classmethod
    def read(cls, path: Path) -> "Trace":
        """Read a trace file; nothing is torn in it, for each line was one write."""
        trace = cls()
        for line in path.read_text().splitlines() if path.exists() else ():
            trace._take(json.loads(line))
        return trace

    def _take(self, event: dict[str, Any]) -> None:
        match event:
            case {"put": reading_id}:
                self.taken.add(reading_id)
            case {"acked": reading_ids}:
                self.acknowledged.update(reading_ids)
            case {"dropped": reading_id}:
                self.dropped.add(reading_id)
            case {"dead": reading_id}:
                self.dead.add(reading_id)
            case {"wait_ms": wait_ms}:
                self.waits_ms.append(wait_ms)
            case {"reset": _}:
                self.starts += 1

    def offered(self) -> set[str]:
        """Return every id that the board may have sent.

        A kill may fall between `put` and its line in the trace: then the number after the last
        one of that boot is on the flash and in no line.
        """
        last: dict[str, int] = {}
        for reading_id in self.taken:
            boot, _, n = reading_id.rpartition("-")
            last[boot] = max(last.get(boot, 0), int(n))
        unsaid = {f"{boot}-{n + 1}" for boot, n in last.items()}
        return self.taken | self.acknowledged | self.dropped | self.dead | unsaid


def waiting(flash: Path) -> set[str]:
    """Return the ids in the outbox of a board that does not run."""
    with Board(Flash(image=flash.read_bytes())) as board:
        assert OUTBOX in board.os.listdir("/"), f"{flash} holds no outbox"
        outbox = board.load("outbox").Outbox(f"/{OUTBOX}", max_bytes=_ALL, max_count=_ALL)
        return {json.loads(record)[0] for _, record in outbox.batch(_ALL, _ALL)}


def stored(database: Path, device: str) -> list[str]:
    """Return the id of every row that a gateway's database has of the device."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT reading_id FROM readings WHERE device = ?", (device,))
        return [reading_id for (reading_id,) in rows]


@dataclass(frozen=True)
class Ledger:
    """One board's books. They balance when `faults` is empty."""

    device: str
    trace: Trace
    stored: list[str]
    waiting: set[str]

    def unaccounted(self) -> set[str]:
        """Return what was taken and is nowhere."""
        known = self.waiting | self.trace.dropped | self.trace.dead
        return self.trace.taken.difference(self.stored, known)

    def faults(self) -> list[str]:
        """Return a line for each law that is broken."""
        rows = set(self.stored)
        found = {
            "taken and nowhere": self.unaccounted(),
            "acknowledged and not stored": self.trace.acknowledged - rows,
            "stored and never offered": rows - self.trace.offered(),
        }
        lines = [
            f"{self.device}: {len(ids)} {law}, such as {min(ids)}"
            for law, ids in found.items()
            if ids
        ]
        if len(rows) < len(self.stored):
            lines.append(f"{self.device}: {len(self.stored) - len(rows)} ids have two rows")
        return lines

    def counts(self) -> dict[str, int]:
        return {
            "taken": len(self.trace.taken),
            "stored": len(set(self.stored)),
            "waiting": len(self.waiting),
            "dropped": len(self.trace.dropped),
            "dead": len(self.trace.dead),
            "starts": self.trace.starts,
        }
