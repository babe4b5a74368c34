"""The workers on a real database: what they do, hand in, give back and lose."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.pool import Pool
from gateway.reaper import Keep, Reaper
from gateway.store.clock import Instant
from gateway.store.database import Database
from gateway.store.jobs import Asked, Ended

REGISTRY = "tests.services.job_kinds:registry"
GIVE_UP_S = 20


class Yard:
    """A database, a folder where the jobs leave their marks, and pools that work there."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.settings: dict[str, Any] = {"folder": str(folder)}

    @asynccontextmanager
    async def pool(self, workers: int = 2, **settings: Any) -> AsyncIterator[Pool]:
        pool = Pool(self.database, REGISTRY, self.settings | settings, workers=workers)
        running = asyncio.create_task(pool.run())
        try:
            yield pool
        finally:
            await pool.stop(0)
            await running

    async def ask(self, pool: Pool, do: str, kind: str = "act", **args: Any) -> int:
        asked = Asked(kind, json.dumps({"do": do} | args), request_id="r1")
        job_id, _ = await self.database.write(
            lambda c: pool.queue.enqueue(c, asked, Instant.now().wall_ms)
        )
        pool.wake()
        return job_id

    async def ask_quietly(self, pool: Pool, do: str, **args: Any) -> int:
        """Ask so that only the next `wake`, or the poll, lets a worker know."""
        asked = Asked("act", json.dumps({"do": do} | args))
        job_id, _ = await self.database.write(
            lambda c: pool.queue.enqueue(c, asked, Instant.now().wall_ms)
        )
        return job_id

    async def job(self, job_id: int) -> dict[str, Any]:
        row = await self.database.one("SELECT * FROM job WHERE id = :id", {"id": job_id})
        assert row is not None
        return dict(row)

    async def until(self, job_id: int, **wanted: Any) -> dict[str, Any]:
        """Wait until the job's row says so."""
        async with asyncio.timeout(GIVE_UP_S):
            while True:
                row = await self.job(job_id)
                if all(row[name] == value for name, value in wanted.items()):
                    return row
                await asyncio.sleep(0.02)

    def marks(self, mark: str) -> list[str]:
        path = self.folder / f"{mark}.txt"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Yard(database, tmp_path)
    await database.close()


async def test_a_job_is_done_and_says_where_its_result_is(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "nothing", mark="a")
        row = await yard.until(job_id, state="done")
    assert (row["attempts"], row["crashes"], row["progress"]) == (1, 0, 100)
    assert row["result"] == "/results/a"
    assert yard.marks("a") == ["began", "ended"]


async def test_every_job_is_done_once_by_several_pools(yard: Yard, tmp_path: Path) -> None:
    other = Yard(await Database.open(str(tmp_path / "fieldpost.db")), tmp_path)
    async with yard.pool() as one, other.pool():
        ids = [await yard.ask(one, "nothing", mark=str(n)) for n in range(60)]
        for job_id in ids:
            await yard.until(job_id, state="done")
    assert all(yard.marks(str(n)) == ["began", "ended"] for n in range(60))
    await other.database.close()


async def test_a_job_that_nobody_was_woken_for_is_found_by_the_poll(yard: Yard) -> None:
    async with yard.pool() as pool:
        pool.wake = lambda: None  # type: ignore[method-assign]  # as if the hint were lost
        await yard.until(await yard.ask(pool, "nothing", mark="a"), state="done")


@pytest.mark.parametrize(
    ("do", "wanted"),
    [
        ("fail", {"state": "pending", "attempts": 1, "error": "OSError: as asked"}),
        ("permanent", {"state": "failed", "attempts": 1, "error": "never"}),
        ("retry_after", {"state": "pending", "attempts": 1, "error": "429"}),
        ("snooze", {"state": "pending", "attempts": 0, "error": None}),
    ],
)
@pytest.mark.parametrize("kind", ["act", "heavy"])
async def test_what_a_handler_raises_says_what_happens(
    yard: Yard, do: str, kind: str, wanted: dict[str, Any]
) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, do, kind, mark="a")
        await yard.until(job_id, **wanted)


async def test_args_of_the_wrong_type_fail_at_once_and_for_good(yard: Yard) -> None:
    async with yard.pool() as pool:
        row = await yard.until(await yard.ask(pool, "nothing", seconds="many"), state="failed")
    assert "seconds" in row["error"]


async def test_a_try_that_takes_too_long_has_failed(yard: Yard) -> None:
    async with yard.pool(timeout_s=0.2, limits={"max_attempts": 1}) as pool:
        for kind in ("act", "heavy"):
            job_id = await yard.ask(pool, "wait", kind, mark=kind, seconds=60)
            row = await yard.until(job_id, state="failed")
            assert row["error"] == "not done within 0.2 s"


async def test_progress_is_seen_while_it_runs(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "wait", mark="a", seconds=60)
        await yard.until(job_id, progress=50, stage="waiting")


async def test_a_running_job_that_is_cancelled_is_discarded(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.lease.RENEW_S", 0.2)
    monkeypatch.setattr("gateway.lease.LOOK_S", 0.1)
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "wait", mark="a", seconds=60)
        await yard.until(job_id, state="running", progress=50)
        await yard.database.write(lambda c: pool.queue.cancel(c, job_id, 0))
        await yard.until(job_id, state="discarded")
    assert yard.marks("a") == ["began"]


async def test_stopping_gives_back_what_does_not_end_in_time_uncounted(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "wait", mark="a", seconds=60)
        await yard.until(job_id, state="running")
    row = await yard.job(job_id)
    assert (row["state"], row["attempts"], row["crashes"]) == ("pending", 0, 0)


async def test_stopping_lets_a_job_end_that_is_nearly_done(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "wait", mark="a", seconds=0.3)
        await yard.until(job_id, state="running")
        await pool.stop(10)
    assert (await yard.job(job_id))["state"] == "done"


async def test_a_job_whose_process_dies_fails_at_its_third_crash_and_its_neighbours_go_on(
    yard: Yard,
) -> None:
    async with yard.pool(limits={"max_crashes": 2, "max_attempts": 5}) as pool:
        pool.queue = type(pool.queue)(pool.queue.limits, random=lambda: -0.999)
        job_id = await yard.ask(pool, "die", "heavy", mark="killer")
        neighbour = await yard.ask(pool, "wait", mark="good", seconds=0.5)
        row = await yard.until(job_id, state="failed")
        assert (row["attempts"], row["crashes"]) == (0, 3)
        await yard.until(neighbour, state="done", attempts=1, crashes=0)


async def test_a_job_that_crashed_runs_in_a_process_of_its_own(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "nothing", mark="first")
        await yard.until(job_id, state="done")
        job_id = await yard.ask(pool, "snooze", mark="a")
        async with asyncio.timeout(GIVE_UP_S):
            while not yard.marks("a"):
                await asyncio.sleep(0.02)
        await yard.until(job_id, state="pending")
        await yard.database.write(
            lambda c: (
                c.execute("UPDATE job SET crashes = 1, run_at_ms = 0 WHERE id = ?", (job_id,))
                and None
            )
        )
        pool.wake()
        async with asyncio.timeout(GIVE_UP_S):
            while len(yard.marks("a")) < 2:
                await asyncio.sleep(0.02)
    pids = {line.split()[1] for line in (yard.folder / "a.txt").read_text().splitlines()}
    assert len(pids) == 2


async def test_a_worker_that_lost_its_job_changes_nothing(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "wait", mark="a", seconds=3)
        running = await yard.until(job_id, state="running")
        # Somebody else has it, as after a suspension longer than the lease.
        await yard.database.write(
            lambda c: c.execute("UPDATE job SET token = 'other' WHERE id = ?", (job_id,)) and None
        )
        ended = Ended(job_id, running["token"], None)  # type: ignore[arg-type]  # never looked at
        kept = await yard.database.write(lambda c: pool.queue.end(c, Instant.now(), ended))
        assert not kept
    row = await yard.job(job_id)
    assert (row["state"], row["token"]) == ("running", "other")


async def test_a_handler_that_blocks_its_thread_keeps_its_lease(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.jobs.LEASE_MS", 1500)
    monkeypatch.setattr("gateway.lease.RENEW_S", 0.2)
    monkeypatch.setattr("gateway.lease.LOOK_S", 0.1)
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "block", mark="a", seconds=3)
        reaper = Reaper(yard.database, pool.queue, pool._now)
        row = await yard.until(job_id, state="done")
        assert await reaper.run_once() == []
    assert (row["attempts"], row["crashes"]) == (1, 0)
    assert yard.marks("a") == ["began", "ended"]


async def test_the_reaper_takes_back_a_job_whose_worker_is_gone(yard: Yard) -> None:
    pool = Pool(yard.database, REGISTRY, yard.settings)
    job_id = await yard.ask(pool, "nothing", mark="a")

    def claim(connection: Any) -> None:
        claimed = pool.queue.claim(connection, Instant.now(), "gone", frozenset({"act"}))
        assert claimed is not None
        connection.execute("UPDATE job SET lease_until_ms = 1")

    await yard.database.write(claim)
    woken: list[bool] = []
    reaper = Reaper(yard.database, pool.queue, Instant.now, wake=lambda: woken.append(True))
    assert await reaper.run_once() == [job_id]
    assert woken
    assert (await yard.job(job_id))["crashes"] == 1


async def test_the_reaper_prunes_in_pieces(yard: Yard) -> None:
    async with yard.pool() as pool:
        ids = [await yard.ask(pool, "nothing", mark="a") for _ in range(3)]
        for job_id in ids:
            await yard.until(job_id, state="done")
    reaper = Reaper(yard.database, pool.queue, Instant.now, keep=Keep(0, 0, 0))
    await asyncio.sleep(0.01)
    assert await reaper.prune() == 3 + 9


async def test_short_jobs_are_taken_several_at_a_time_and_each_is_done_once(yard: Yard) -> None:
    pool = Pool(yard.database, REGISTRY, yard.settings, workers=2)
    for _ in range(200):
        await yard.ask(pool, "nothing", mark="a")
    running = asyncio.create_task(pool.run())
    async with asyncio.timeout(GIVE_UP_S):
        while len(yard.marks("a")) < 400:
            await asyncio.sleep(0.02)
    assert pool._ahead > 1
    await pool.stop(10)
    await running
    rows = await yard.database.all("SELECT state, attempts, crashes FROM job")
    assert {tuple(row) for row in rows} == {("done", 1, 0)}
    assert len(yard.marks("a")) == 400


async def test_a_short_job_does_not_wait_behind_a_long_one_that_was_taken_with_it(
    yard: Yard,
) -> None:
    async with yard.pool(workers=2) as pool:
        pool._ahead = 8
        ids = [
            await yard.ask_quietly(pool, do, mark=do, seconds=60)
            for do in ("wait", "nothing", "nothing", "nothing")
        ]
        pool.wake()
        for job_id in ids[1:]:
            row = await yard.until(job_id, state="done")
            assert (row["attempts"], row["crashes"]) == (1, 0)
        assert (await yard.job(ids[0]))["state"] == "running"


async def test_what_was_taken_ahead_is_given_back_uncounted_when_the_pool_stops(
    yard: Yard,
) -> None:
    pool = Pool(yard.database, REGISTRY, yard.settings, workers=1)
    pool._ahead = 8
    for number in range(8):
        await yard.ask(pool, "wait" if number == 0 else "nothing", mark=str(number), seconds=60)
    running = asyncio.create_task(pool.run())
    async with asyncio.timeout(GIVE_UP_S):
        while not yard.marks("0"):
            await asyncio.sleep(0)
    await pool.stop(0)
    await running
    rows = await yard.database.all("SELECT state, attempts, crashes FROM job")
    assert {tuple(row) for row in rows} == {("pending", 0, 0)}
    assert not any(yard.marks(str(number)) for number in range(1, 8))


Act = Callable[[Pool], Awaitable[int]]


async def test_an_effect_is_done_once_however_often_the_job_runs(yard: Yard) -> None:
    async with yard.pool() as pool:
        for _ in range(2):
            await yard.until(await yard.ask(pool, "effect", mark="mail"), state="done")
    assert yard.marks("mail").count("acted") == 1


async def test_an_effect_of_unknown_fate_waits_for_a_person(yard: Yard) -> None:
    async with yard.pool() as pool:
        job_id = await yard.ask(pool, "effect", mark="mail", seconds=1)
        await yard.until(job_id, attempts=1)
        await yard.database.write(
            lambda c: c.execute("UPDATE job SET run_at_ms = 0 WHERE id = ?", (job_id,)) and None
        )
        pool.wake()
        row = await yard.until(job_id, state="failed")
        assert "may have happened" in row["error"]
        assert yard.marks("mail").count("acted") == 1
        await yard.database.write(lambda c: pool.queue.retry(c, job_id, 0))
        pool.wake()
        await yard.until(job_id, attempts=1)
    assert yard.marks("mail").count("acted") == 2


async def test_an_effect_that_another_job_began_is_repeated_when_the_one_it_held_up_is_retried(
    yard: Yard,
) -> None:
    async with yard.pool(limits={"max_attempts": 1}) as pool:
        began = await yard.ask(pool, "effect", mark="mail", seconds=1)
        await yard.until(began, state="failed")
        held_up = await yard.ask(pool, "effect", mark="mail")
        row = await yard.until(held_up, state="failed")
        assert "may have happened" in row["error"]
        await yard.database.write(lambda c: pool.queue.retry(c, held_up, 0))
        pool.wake()
        await yard.until(held_up, state="done")
    assert yard.marks("mail").count("acted") == 2


async def test_an_effect_that_another_job_is_at_is_waited_for_and_never_taken_away(
    yard: Yard,
) -> None:
    async with yard.pool() as pool:
        at_it = await yard.ask(pool, "effect", mark="mail", pause_s=1.0)
        async with asyncio.timeout(GIVE_UP_S):
            while "acted" not in yard.marks("mail"):
                await asyncio.sleep(0.02)
        other = await yard.ask(pool, "effect", mark="mail")
        snoozed = "SELECT 1 FROM job_event WHERE job_id = ? AND verb = 'snooze'"
        async with asyncio.timeout(GIVE_UP_S):
            while await yard.database.one(snoozed, (other,)) is None:
                await asyncio.sleep(0.02)
        row = await yard.job(other)
        assert (row["state"], row["attempts"]) == ("pending", 0)
        assert row["error"] == f"waits: job {at_it} may be doing test:mail just now"
        await yard.until(at_it, state="done")
    assert yard.marks("mail").count("acted") == 1
