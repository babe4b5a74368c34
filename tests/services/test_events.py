"""The bus, what the workers tell on it, and the log line of each move."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway import log as logs
from gateway import move_log
from gateway.events import (
    Bus,
    Event,
    JobAdded,
    JobClaimed,
    JobDiscarded,
    JobEvent,
    JobFailed,
    JobFinished,
    JobInterrupted,
    JobProgressed,
    JobRescued,
    JobRetried,
    ReadingsStored,
)
from gateway.ingest import Ingest
from gateway.pool import Pool
from gateway.reaper import Reaper
from gateway.schedule import Schedule
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Asked
from gateway.tables import Periodic

REGISTRY = "tests.services.job_kinds:registry"
GIVE_UP_S = 20
FORGED = "b\n2026-12-01T00:00:00.000Z ERROR gateway: forged\r\u2028"


class Told:
    """A database whose bus is listened to."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.settings: dict[str, Any] = {"folder": str(folder)}
        self.bus = Bus()
        self.events: list[Event] = []
        self.bus.subscribe(self.events.append)

    @asynccontextmanager
    async def pool(self, **settings: Any) -> AsyncIterator[Pool]:
        pool = Pool(self.database, REGISTRY, self.settings | settings, workers=1, bus=self.bus)
        running = asyncio.create_task(pool.run())
        try:
            yield pool
        finally:
            await pool.stop(0)
            await running

    async def ask(self, pool: Pool, do: str, **args: Any) -> int:
        asked = Asked("act", json.dumps({"do": do} | args), request_id="r1")
        job_id, _ = await self.database.write(
            lambda c: pool.queue.enqueue(c, asked, Instant.now().wall_ms)
        )
        pool.wake()
        return job_id

    async def until(self, kind: type[Event]) -> Any:
        """Return the event of that kind as soon as it was told."""
        async with asyncio.timeout(GIVE_UP_S):
            while not (found := [event for event in self.events if type(event) is kind]):
                await asyncio.sleep(0.01)
        return found[-1]

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Told]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Told(database, tmp_path)
    await database.close()


def test_a_watcher_that_fails_hurts_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = Bus(), list[Event]()
    bus.subscribe(lambda event: 1 // 0)
    leave = bus.subscribe(heard.append)
    event = JobAdded(1, "act", None)
    bus.publish(event)
    leave()
    bus.publish(event)
    assert heard == [event]
    assert "a watcher failed at JobAdded" in caplog.text


def test_a_bus_that_nobody_watches_says_so() -> None:
    bus = Bus()
    assert not bus.is_watched
    leave = bus.subscribe(lambda event: None)
    assert bus.is_watched
    leave()
    assert not bus.is_watched


async def test_a_job_that_is_done_was_claimed_and_finished(told: Told) -> None:
    async with told.pool() as pool:
        job_id = await told.ask(pool, "wait", seconds=0.05)
        finished = await told.until(JobFinished)
    assert told.events[0] == JobClaimed(job_id, "act", "r1")
    assert (finished.id, finished.kind, finished.request_id) == (job_id, "act", "r1")
    assert 0.05 <= finished.work_s < GIVE_UP_S


@pytest.mark.parametrize(("do", "is_final"), [("fail", False), ("permanent", True)])
async def test_a_try_that_ends_badly_says_whether_another_follows(
    told: Told, do: str, is_final: bool
) -> None:
    async with told.pool() as pool:
        await told.ask(pool, do)
        failed = await told.until(JobFailed)
    assert failed.is_final == is_final
    assert failed.error == ("never" if is_final else "OSError: as asked")


async def test_a_job_given_back_at_the_stop_or_too_early_was_interrupted(told: Told) -> None:
    async with told.pool() as pool:
        await told.ask(pool, "snooze")
        await told.until(JobInterrupted)
        told.events.clear()
        await told.ask(pool, "wait", seconds=60)
        await told.until(JobClaimed)
    assert told.names[-1] == "JobInterrupted"


async def test_progress_is_told_when_it_is_written_and_a_cancel_when_it_is_done(told: Told) -> None:
    async with told.pool() as pool:
        job_id = await told.ask(pool, "wait", seconds=60)
        progressed = await told.until(JobProgressed)
        assert (progressed.progress, progressed.stage) == (50, "waiting")
        await told.database.write(lambda c: pool.queue.cancel(c, job_id, Instant.now().wall_ms))
        discarded = await told.until(JobDiscarded)
    assert (discarded.id, discarded.request_id) == (job_id, "r1")


async def test_a_rescue_is_told_with_its_job(told: Told) -> None:
    pool = Pool(told.database, REGISTRY, told.settings)
    job_id = await told.ask(pool, "nothing")
    ahead_ms = 60_000

    def dead(connection: Any) -> None:
        pool.queue.claim(connection, Instant.now(), "gone", frozenset({"act"}))
        connection.execute("UPDATE job SET lease_until_ms = lease_until_ms - ?", (ahead_ms,))

    await told.database.write(dead)
    assert await Reaper(told.database, pool.queue, Instant.now, bus=told.bus).run_once() == [job_id]
    assert told.events == [JobRescued(job_id, "act", "r1", is_final=False)]


async def test_a_job_that_kills_its_process_is_rescued_at_once(told: Told) -> None:
    async with told.pool() as pool:
        job_id = await told.ask(pool, "nothing")
        await told.until(JobFinished)
        asked = Asked("heavy", json.dumps({"do": "die"}), request_id="r2")
        job_id, _ = await told.database.write(
            lambda c: pool.queue.enqueue(c, asked, Instant.now().wall_ms)
        )
        pool.wake()
        rescued = await told.until(JobRescued)
    assert (rescued.id, rescued.request_id, rescued.is_final) == (job_id, "r2", False)


async def test_a_periodic_job_is_told_of_when_it_is_asked_for(told: Told) -> None:
    pool = Pool(told.database, REGISTRY, told.settings)
    periodic = Periodic(name="nightly", cron="* * * * *", kind="act", time_zone="UTC")
    now_ms = [1_764_529_200_000]
    schedule = Schedule(
        told.database, pool.queue, pool.kinds, [periodic], now_ms=lambda: now_ms[0], bus=told.bus
    )
    await schedule.run_once()
    now_ms[0] += 60_000
    await schedule.run_once()
    assert told.events == [JobAdded(1, "act", "schedule:nightly")]


async def test_a_delivery_says_what_became_of_it(told: Told) -> None:
    def body(*values: float) -> bytes:
        readings = [
            {"id": f"b-7f3a17c21-{n}", "sensor": "t", "value": value, "at_ms": 1764529200000}
            for n, value in enumerate(values, 1)
        ]
        wrong = [{"id": "x", "sensor": "t"}]
        return json.dumps({"device": "b", "readings": readings + wrong}).encode()

    ingest = Ingest(told.database, told.bus)
    await ingest.deliver(body(1), device=None, received_ms=1764529200000)
    await ingest.deliver(body(2, 3), device=None, received_ms=1764529200000)
    first, second = told.events
    assert isinstance(first, ReadingsStored)
    assert isinstance(second, ReadingsStored)
    assert (first.device, first.stored, first.duplicates, first.rejected) == ("b", 1, 0, 1)
    assert (second.stored, second.rejected, second.conflicting) == (1, 2, 1)
    assert 0 < second.took_s < GIVE_UP_S


# -- the log


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Give the root logger, and put back what it had."""
    logger = logging.getLogger()
    before, level = logger.handlers[:], logger.level
    logger.handlers.clear()
    yield logger
    logger.handlers[:] = before
    logger.setLevel(level)


MOVES: list[JobEvent] = [
    JobAdded(7, "act", "r1"),
    JobClaimed(7, "act", "r1"),
    JobFinished(7, "act", "r1", 0.25),
    JobFailed(7, "act", "r1", 0.25, "no", True),
    JobRetried(7, "act", "r1"),
    JobRescued(7, "act", "r1", False),
    JobInterrupted(7, "act", "r1"),
    JobDiscarded(7, "act", "r1"),
]


@pytest.mark.parametrize("move", MOVES, ids=lambda move: type(move).__name__)
def test_each_move_is_one_line_with_its_job_and_who_asked(
    root: logging.Logger, move: JobEvent
) -> None:
    out = io.StringIO()
    logs.configure("info", "json", out)
    move_log.watch(move)
    line = json.loads(out.getvalue())
    assert line["message"].startswith("job 7 ")
    assert (line["job_id"], line["kind"], line["request_id"]) == (7, "act", "r1")


def test_progress_is_a_line_for_who_asks_for_details_only(root: logging.Logger) -> None:
    progressed = JobProgressed(7, "act", "r1", 50, "half")
    out = io.StringIO()
    logs.configure("info", "text", out)
    move_log.watch(progressed)
    assert not out.getvalue()
    logs.configure("debug", "text", out)
    move_log.watch(progressed)
    assert "job 7 progressed to 50 %, half" in out.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_forges_a_line_through_a_job_or_a_device(root: logging.Logger, form: str) -> None:
    out = io.StringIO()
    logs.configure("debug", form, out)
    move_log.watch(JobFailed(7, FORGED, FORGED, 0.0, FORGED, False))
    move_log.watch(JobProgressed(7, FORGED, FORGED, 1, FORGED))
    move_log.watch(ReadingsStored(FORGED, 1, 0, 0, 0, 0.0))
    assert len(out.getvalue().splitlines()) == 2
