"""The workers: each takes a job, does it, hands it in and takes the next.

Handing in one job and taking the next is one transaction, and the turns of several workers share
it. While jobs are very short a worker takes several at a time, does them one after another and
hands them in together; as soon as one is not so short it gives the others back, uncounted.
What is under way is known to the Keeper, which keeps the leases and hears of cancels.
"""

import asyncio
import contextlib
import logging
import os
import platform
import sqlite3
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from gateway import child, moves, outcomes
from gateway.errors import Unavailable
from gateway.events import Bus, JobProgressed
from gateway.kinds import Context, Kind
from gateway.lease import Held, Keeper
from gateway.log import of_job
from gateway.outcomes import Done, Dropped, Failed, Outcome, Released
from gateway.states import State
from gateway.store import queries
from gateway.store.clock import Instant, machine_boot
from gateway.store.database import MEMORY, Database
from gateway.store.jobs import Claimed, Ended, Queue

log = logging.getLogger(__name__)

POLL_S = 0.5
_AGAIN_S = 1.0  # when the database can't be written
MOST_AHEAD = 16  # jobs that a worker takes at a time
SHORT_S = 0.02  # what all that were taken at a time may last, before the rest is given back


class Why(Enum):
    """Why a try was stopped from outside."""

    CANCELLED = "cancelled"
    LOST = "lost"
    STOPPED = "stopped"


class Turn(NamedTuple):
    """What a worker comes with: the jobs it ended, and how many it wants."""

    ended: list[Ended]
    wants: int


class Taken(NamedTuple):
    """What it leaves with: jobs, and the states of those it handed in that were still its own."""

    claimed: list[Claimed]
    kept: dict[int, State]


class Pool:
    """Runs workers on a database until it is stopped.

    Args:
        registry: `module:function`, called with `settings`; it returns the kinds that these
            workers know. A name, because a child process has to find them again.
        now: by both clocks, see `Instant`.
        bus: is told each move that these workers make, after its commit.
    """

    def __init__(
        self,
        database: Database,
        registry: str,
        settings: dict[str, Any] | None = None,
        *,
        workers: int = 4,
        now: Callable[[], Instant] | None = None,
        bus: Bus | None = None,
    ) -> None:
        boot = machine_boot()
        self._bus = bus or Bus()
        self.kinds = child.kinds_of(registry, settings or {})
        self._registry = registry
        self._settings = settings or {}
        self._database = database
        self._workers = workers
        self._now = now or (lambda: Instant.now(boot))
        limits = {name: kind.limits for name, kind in self.kinds.items()}
        self.queue = Queue(limits, clock=self._now)
        self._name = f"{platform.node()}:{os.getpid()}"
        self._news = asyncio.Event()
        self._stopping = False
        self._tries: set[_Try] = set()
        self._ahead = 1  # how many jobs a worker takes at a time just now
        self._take_turns = self._turns  # the same object each time: so turns share a call

    def wake(self) -> None:
        """Say that there may be a job. A hint: if it is lost, the poll finds the job."""
        self._news.set()

    async def run(self) -> None:
        """Work until `stop`."""
        self._keeper = Keeper(self._database.path, self.queue, self._now)
        poll = asyncio.create_task(self._poll())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
        finally:
            poll.cancel()
            await asyncio.to_thread(self._keeper.close)

    async def stop(self, drain_s: float) -> None:
        """Take no more; after `drain_s` give back, uncounted, what is still under way."""
        self._stopping = True
        self._news.set()
        if self._tries:
            await asyncio.wait({one.task for one in self._tries}, timeout=drain_s)
        for one in list(self._tries):
            one.stop(Why.STOPPED)

    async def _poll(self) -> None:
        """Wake the workers when something is due, whoever put it there."""
        sql = queries.load("jobs").next_due
        while True:
            await asyncio.sleep(POLL_S)
            with contextlib.suppress(sqlite3.Error, Unavailable):
                row = await self._database.one(sql)
                due_ms = row and row["run_at_ms"]
                if due_ms is not None and due_ms <= self._now().wall_ms:
                    self._news.set()

    async def _work(self) -> None:
        ended: list[Ended] = []
        while True:
            self._news.clear()
            claimed = await self._hand_in(ended, 0 if self._stopping else self._ahead)
            ended = await self._do_all(claimed)
            if not claimed and self._stopping:
                return
            if not claimed and not self._news.is_set():
                await self._news.wait()

    async def _hand_in(self, ended: list[Ended], wants: int) -> list[Claimed]:
        claimed, kept = await self._turn(Turn(ended, wants))
        for one in ended:
            if one.id not in kept:
                log.warning("job %d was not this worker's any more; nothing changed", one.id)
        if self._bus.is_watched:
            self._tell(ended, kept, claimed)
        return claimed

    def _tell(self, ended: list[Ended], kept: dict[int, State], claimed: list[Claimed]) -> None:
        for one in ended:
            if one.job is not None and one.id in kept:
                self._bus.publish(moves.of_end(one, one.job, kept[one.id]))
        for job in claimed:
            self._bus.publish(moves.of_claim(job))

    async def _do_all(self, claimed: list[Claimed]) -> list[Ended]:
        """Do them one after another; return what to hand in.

        Those that would have to wait for long are given back: a job is not held up by the one
        before it, and has hardly been held if that one kills the process.
        """
        loop = asyncio.get_running_loop()
        late = loop.time() + SHORT_S
        waiting, ended = deque(claimed), list[Ended]()
        giving_back: list[asyncio.Task[None]] = []

        def give_back() -> None:
            self._ahead = 1
            if waiting:
                rest = [Ended(job.id, job.token, Released(), job) for job in waiting]
                giving_back.append(loop.create_task(self._give_back(ended + rest)))
                waiting.clear()
                ended.clear()

        timer = loop.call_at(late, give_back)
        try:
            while waiting:
                if self._stopping:  # `stop` did not know of these: they were on their way here
                    give_back()
                    break
                done = await self._do(waiting.popleft())
                if done is not None:
                    ended.append(done)
                if self._stopping or loop.time() > late:
                    give_back()
        finally:
            timer.cancel()
            await asyncio.gather(*giving_back)
        if claimed and loop.time() < late - SHORT_S / 2:
            self._ahead = min(2 * self._ahead, MOST_AHEAD)
        return ended

    async def _give_back(self, ended: list[Ended]) -> None:
        await self._hand_in(ended, 0)
        self._news.set()

    async def _turn(self, turn: Turn) -> Taken:
        """Take a turn; while the database can't be written, wait."""
        while True:
            try:
                return await self._database.write_together(self._take_turns, turn)
            except Unavailable as error:
                log.warning("the queue has to wait: %s", error.detail)
                if self._stopping:  # what is handed in now is lost, and rescued by its lease
                    return Taken([], {})
                await asyncio.sleep(_AGAIN_S)

    def _turns(self, connection: sqlite3.Connection, turns: list[Turn]) -> list[Taken]:
        now, names = self._now(), frozenset(self.kinds)
        kept = self.queue.end_several(
            connection, now, [one for turn in turns for one in turn.ended]
        )
        wanted = sum(turn.wants for turn in turns)
        claimed = iter(self.queue.claim_several(connection, now, self._name, names, wanted))
        # Round and round, so that a few jobs are shared out and not all one worker's.
        shares: list[list[Claimed]] = [[] for _ in turns]
        for lap in range(max(turn.wants for turn in turns)):
            for turn, share in zip(turns, shares, strict=True):
                if turn.wants > lap and (job := next(claimed, None)):
                    share.append(job)
        return [Taken(share, kept) for share in shares]

    async def _do(self, claimed: Claimed) -> Ended | None:
        """Run one try; return what to hand in, None if the job is somebody else's now."""
        loop = asyncio.get_running_loop()
        held = Held(claimed.id, claimed.token)
        one = _Try(loop.create_task(self._attempt(claimed, held)))
        held.on_cancelled = lambda: loop.call_soon_threadsafe(one.stop, Why.CANCELLED)
        held.on_lost = lambda: loop.call_soon_threadsafe(one.stop, Why.LOST)
        if self._bus.is_watched:
            held.on_progressed = self._progress_of(claimed)
        began = loop.time()
        self._keeper.hold(held)
        self._tries.add(one)
        try:
            outcome = await one.outcome()
        finally:
            self._tries.discard(one)
            self._keeper.let_go(claimed.token)
        if outcome is None:
            return None
        return Ended(claimed.id, claimed.token, outcome, claimed, loop.time() - began)

    def _progress_of(self, job: Claimed) -> Callable[[int, str | None], object]:
        """Return what tells the watchers of a job's progress, from the keeper's thread."""
        loop = asyncio.get_running_loop()

        def tell(percent: int, stage: str | None) -> None:
            event = JobProgressed(job.id, job.kind, job.request_id, percent, stage)
            loop.call_soon_threadsafe(self._bus.publish, event)

        return tell

    async def _attempt(self, claimed: Claimed, held: Held) -> Outcome:
        kind = self.kinds[claimed.kind]
        limit = asyncio.timeout(kind.timeout_s)
        try:
            args = kind.decode(claimed.args)
            async with limit:
                if self._runs_alone(kind, claimed):
                    order = child.Order(
                        self._database.path, self._registry, self._settings, claimed
                    )
                    return await child.run(order, held.report)
                return Done(await kind.handler(self._context(claimed, held), args))
        except Exception as error:
            if limit.expired():
                return Failed(f"not done within {kind.timeout_s:g} s")
            return outcomes.of(error)

    def _runs_alone(self, kind: Kind, claimed: Claimed) -> bool:
        """Return whether a try gets a process: a job that crashed must not take neighbours along.

        A database in memory can't be seen from another process.
        """
        return (kind.heavy or claimed.crashes > 0) and self._database.path != MEMORY

    def _context(self, claimed: Claimed, held: Held) -> Context:
        line = of_job(claimed.id, claimed.request_id)
        return Context(claimed.id, claimed.request_id, self._database, line, held.report)


class _Try:
    """A try under way, and why it was stopped if it was."""

    def __init__(self, task: "asyncio.Task[Outcome]") -> None:
        self.task = task
        self._why: Why | None = None

    def stop(self, why: Why) -> None:
        if self._why is None:
            self._why = why
            self.task.cancel()

    async def outcome(self) -> Outcome | None:
        """Wait for its end; a try that ended before it could be stopped has ended as it did."""
        if not self.task.done():
            ended = asyncio.get_running_loop().create_future()

            def end(_: object) -> None:
                if not ended.done():
                    ended.set_result(None)

            self.task.add_done_callback(end)
            try:
                await ended
            finally:
                self.task.cancel()  # if it is we who are cancelled
        if self._why is Why.LOST:
            return None
        if not self.task.cancelled():
            return self.task.result()
        if self._why is Why.CANCELLED:
            return Dropped()
        return Released()
