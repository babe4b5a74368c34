"""A database of jobs, and the processes that do them."""

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from gateway.store.database import connect
from gateway.store.jobs import Asked, Queue

GIVE_UP_S = 60


class Site:
    """Args: program: starts `python -m MODULE …`."""

    def __init__(self, folder: Path, program: Callable[..., object]) -> None:
        self.db = folder / "fieldpost.db"
        self.marks_file = folder / "marks"
        self._program = program

    def workers(self, count: int, *more: object, environ: dict[str, str] | None = None):
        """Start a process with so many workers and wait until it says so."""
        process = self._start(count, *more, environ=environ)
        process.wait_for("workers do the jobs|listening on")
        return process

    def several_workers(self, processes: int, count: int) -> None:
        """Start processes with so many workers each, all at once, and wait for them."""
        started = [self._start(count) for _ in range(processes)]
        for process in started:
            process.wait_for("workers do the jobs")

    def _start(self, count: int, *more: object, environ: dict[str, str] | None = None):
        words = [str(word) for word in (self.db, count, *more)]
        return self._program("tests.system.worker_process", *words, environ=environ)

    def ask(
        self, count: int, kind: str, seconds: float = 0, clock_is_ahead_s: float = 0
    ) -> list[int]:
        asked = Asked(kind, json.dumps({"seconds": seconds}))
        with closing(connect(str(self.db))) as connection:
            connection.execute("BEGIN IMMEDIATE")
            now_ms = int((time.time() + clock_is_ahead_s) * 1000)
            ids = [Queue().enqueue(connection, asked, now_ms)[0] for _ in range(count)]
            connection.execute("COMMIT")
        return ids

    def rows(self, sql: str) -> list[tuple]:
        with closing(sqlite3.connect(self.db)) as connection:
            return connection.execute(sql).fetchall()

    def states(self) -> Counter:
        return Counter(dict(self.rows("SELECT state, count(*) FROM job GROUP BY state")))

    def marks(self, what: str) -> list[tuple[int, int]]:
        """Return (job, process) of each time it was noted."""
        return [(job, pid) for job, noted, pid, _ in self._lines() if noted == what]

    def instants(self, what: str) -> dict[int, float]:
        """Return when each job noted it last, by the machine's monotonic clock."""
        return {job: at for job, noted, _, at in self._lines() if noted == what}

    def _lines(self) -> list[tuple[int, str, int, float]]:
        text = self.marks_file.read_text() if self.marks_file.exists() else ""
        lines = [line.split() for line in text.splitlines()]
        return [(int(job), noted, int(pid), float(at)) for job, noted, pid, at in lines]

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        give_up_at = time.monotonic() + GIVE_UP_S
        while not holds():
            assert time.monotonic() < give_up_at, (self.states(), self.rows("SELECT * FROM job"))
            time.sleep(0.02)
