"""Where requests hand jobs to the queue: what is committed is told to watchers and to workers."""

import sqlite3
from collections.abc import Callable

from gateway.events import Bus, JobAdded, JobDiscarded, JobRetried
from gateway.states import State, Verb
from gateway.store import job_pages
from gateway.store.database import Database
from gateway.store.jobs import Asked, NotAllowed, Queue

_Decide = Callable[[sqlite3.Connection, int, int], State | None]


class Desk:
    """Adds jobs and moves them as people decide.

    Args:
        wake: tells the workers of this process that there is a job.
        now_ms: the wall clock.
        bus: is told of each job that is new, and of each decision.
    """

    def __init__(
        self,
        db: Database,
        queue: Queue,
        wake: Callable[[], None],
        now_ms: Callable[[], int],
        bus: Bus | None = None,
    ) -> None:
        self._db = db
        self._queue = queue
        self._wake = wake
        self._now_ms = now_ms
        self._bus = bus or Bus()
        self._moves: dict[Verb, _Decide] = {
            Verb.RETRY: queue.retry, Verb.DISCARD: queue.discard, Verb.CANCEL: queue.cancel
        }  # fmt: skip

    async def add(self, job: Asked) -> tuple[int, bool]:
        """Add a job; return its id, and False if its idempotency key had added it before.

        Raises:
            KeyUsed: the key was used for something else.
            Unavailable: it was not added.
        """
        self._wake()  # before the commit too: then a worker's claim may share it
        job_id, is_new = await self._db.write(lambda c: self._queue.enqueue(c, job, self._now_ms()))
        if is_new:
            self._wake()
            self._bus.publish(JobAdded(job_id, job.kind, job.request_id))
        return job_id, is_new

    async def decide(self, job_id: int, verb: Verb) -> tuple[sqlite3.Row, bool]:
        """Make the move; return the job's row after it, and False if it was asked of its worker.

        Raises:
            NotAllowed: the job is in a state that does not have it, or there is no such job.
        """
        move = self._moves[verb]
        state = await self._db.write(lambda c: move(c, job_id, self._now_ms()))
        row = await self.row(job_id)
        if row is None:
            raise NotAllowed(None)
        is_done = state is not State.RUNNING
        if is_done:
            event = JobRetried if verb is Verb.RETRY else JobDiscarded
            self._bus.publish(event(job_id, row["kind"], row["request_id"]))
        if verb is Verb.RETRY:
            self._wake()
        return row, is_done

    async def row(self, job_id: int) -> sqlite3.Row | None:
        """Return what the job's row says, None if there is no such job."""
        return await job_pages.get(self._db, job_id)
