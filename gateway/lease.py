"""Keeps the leases of this process's jobs, in a thread that no job can starve.

It has a connection of its own and renews every 5 s; what the jobs say of their progress rides on
it, within a second. It is also how a worker hears that its job was cancelled, or lost.
"""

import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.store.clock import Instant
from gateway.store.database import connect
from gateway.store.jobs import Queue

RENEW_S = 5.0
LOOK_S = 1.0


@dataclass
class Held:
    """A job that this process has.

    Attributes:
        on_cancelled: called once, in the keeper's thread, when a person does not want it any more.
        on_lost: called once, in the keeper's thread, when the lease is somebody else's.
        on_progressed: called with percent and stage, in the keeper's thread, when they are written.
    """

    id: int
    token: str
    on_cancelled: Callable[[], object] = lambda: None
    on_lost: Callable[[], object] = lambda: None
    on_progressed: Callable[[int, str | None], object] = lambda percent, stage: None
    renewed_at: float = field(default_factory=time.monotonic)
    percent: int | None = None
    stage: str | None = None

    def report(self, percent: int, stage: str | None) -> None:
        """Note the progress; the keeper writes it down."""
        self.percent, self.stage = percent, stage or self.stage


class Keeper:
    """The thread. `hold` a job when it is claimed, `let_go` before it is handed in."""

    def __init__(self, path: str, queue: Queue, now: Callable[[], Instant]) -> None:
        self._path = path
        self._queue = queue
        self._now = now
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
        self._thread.start()

    def hold(self, held: Held) -> None:
        with self._lock:
            self._held[held.token] = held

    def let_go(self, token: str) -> None:
        with self._lock:
            self._held.pop(token, None)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while not self._stop.wait(LOOK_S):
            due = self._due()
            if not due:
                continue
            try:
                connection = connection or connect(self._path)
                self._renew(connection, due)
            except sqlite3.Error:
                # Locked, full or being replaced: tried again in a second, and the lease is long.
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _due(self) -> list[Held]:
        with self._lock:
            held = list(self._held.values())
        now = time.monotonic()
        return [job for job in held if job.percent is not None or now - job.renewed_at >= RENEW_S]

    def _renew(self, connection: sqlite3.Connection, due: list[Held]) -> None:
        told = [(job, job.percent, job.stage) for job in due]
        now = self._now()
        connection.execute("BEGIN IMMEDIATE")
        try:
            answers = [
                self._queue.renew(connection, now, job.id, job.token, percent, stage)
                for job, percent, stage in told
            ]
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        for (job, percent, stage), cancelled in zip(told, answers, strict=True):
            job.renewed_at = time.monotonic()
            if percent is not None and cancelled is not None:
                job.on_progressed(percent, stage)
            if job.percent == percent:
                job.percent = None
            if cancelled is None:
                self._tell(job, job.on_lost)
            elif cancelled:
                self._tell(job, job.on_cancelled)

    def _tell(self, job: Held, what: Callable[[], object]) -> None:
        # Not if it was let go meanwhile: then it ended, and lost nothing.
        with self._lock:
            known = self._held.get(job.token) is job
        if known:
            what()
