"""The stream of events: what changed is told to all, soon, not too often, and to the slow too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway.events import Event, JobEvent
from gateway.states import State
from gateway.store import queries
from gateway.store.database import connect
from gateway.store.jobs import Asked, Queue
from gateway.store.moves import Move
from gateway.web.changes import EVERYTHING, INTERVAL_S, MOST_KEPT, MOST_NAMED, Changes
from gateway.web.exchange import REQUEST_ID
from gateway.web.server import Runner
from gateway.web.stream import GRACE_S, MOST_VIEWERS, Stream
from tests.web.house import NOW_MS, House, batch, body, problem_of, start
from tests.web.viewer import GIVE_UP_S, Viewer, viewer


@asynccontextmanager
async def watching(house: House, last_id: str | None = None) -> AsyncIterator[Viewer]:
    async with viewer(house.port, token=house.keys.operator_token, last_id=last_id) as watcher:
        assert watcher.status == 200, watcher.head
        yield watcher


@asynccontextmanager
async def bare(changes: Changes, **settings: Any) -> AsyncIterator[int]:
    """Serve a stream of these changes alone."""
    stream = Stream(changes, **settings)

    @web.middleware
    async def around(request, handler):
        request[REQUEST_ID] = "r"
        return await handler(request)

    app = web.Application(middlewares=[around])
    app.router.add_get("/v1/events", stream.get)
    runner = Runner(app, stop_timeout_s=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        stream.end()
        await runner.cleanup()


async def test_who_comes_is_told_that_all_may_have_changed(house: House) -> None:
    async with watching(house) as watcher:
        first = await watcher.next()
    assert first.parts == set(EVERYTHING)
    assert first.id
    assert int(first.retry or 0) > 0
    assert "Content-Type: text/event-stream" in watcher.head
    assert "Fieldpost-Protocol: 1" in watcher.head


async def test_a_reading_that_arrives_is_told_with_its_device(registered: House) -> None:
    async with watching(registered) as watcher:
        await watcher.next()
        await registered.signed("esp32-1", body(batch()))
        assert await watcher.until("devices") == {"devices", "device:esp32-1"}


async def test_the_moves_of_a_job_are_told_and_its_progress_too(open_house) -> None:
    house = await open_house(workers=1)
    async with watching(house) as watcher:
        await watcher.next()
        job = {"kind": "act", "args": {"do": "wait", "mark": "a", "seconds": 30}}
        job_id = (await house.ask_for(job)).json["id"]
        told = await watcher.until("jobs", f"job:{job_id}", "headline")
        assert "devices" not in told
        await house.until(job_id, "running")
        while (await house.operator(f"/v1/jobs/{job_id}")).json["progress"] != 50:
            await watcher.until(f"job:{job_id}")


async def test_what_another_process_does_to_the_jobs_is_told(house: House) -> None:
    async with watching(house) as watcher:
        await watcher.next()
        with closing(connect(house.db.path)) as other:
            other.execute("BEGIN IMMEDIATE")
            job_id, _ = Queue().enqueue(other, Asked("act", "{}"), NOW_MS)
            other.execute("COMMIT")
        await watcher.until("jobs", f"job:{job_id}")


async def test_an_open_stream_tells_each_part_only_a_few_times_a_second(registered: House) -> None:
    async with watching(registered) as watcher:
        await watcher.next()
        clock = asyncio.get_running_loop().time
        begun, n = clock(), 0
        while clock() - begun < 4 * INTERVAL_S:
            n += 1
            await registered.signed("esp32-1", body(batch(first=n)))
        most = (clock() - begun) / INTERVAL_S + 2
        messages = 0
        await registered.job()
        while "job:1" not in (await watcher.next()).parts:
            messages += 1
        assert 2 <= messages <= most < n


async def test_what_a_person_decides_is_told_to_the_processes_own_watchers(open_house: Any) -> None:
    house = await open_house(workers=1)
    events: list[Event] = []
    house.bus.subscribe(events.append)
    await house.job("permanent", X_Request_ID="r1")
    await house.until(1, "failed")
    await house.decide(1, "retry")
    await house.until(1, "failed")
    await house.decide(1, "discard")
    told = [type(event).__name__ for event in events if isinstance(event, JobEvent)]
    tried = ["JobClaimed", "JobFailed"]
    assert sorted(told) == sorted(["JobAdded", *tried, "JobRetried", *tried, "JobDiscarded"])
    assert {event.request_id for event in events if isinstance(event, JobEvent)} == {"r1"}


async def test_who_comes_back_is_told_what_it_missed_and_no_more(registered: House) -> None:
    async with watching(registered) as watcher:
        first = await watcher.next()
    await registered.job()
    async with watching(registered) as meanwhile:
        await meanwhile.until("job:1")
    async with watching(registered, last_id=first.id) as watcher:
        again = await watcher.next()
    assert again.parts == {"jobs", "job:1", "headline"}
    assert again.id != first.id


async def test_an_id_of_another_run_or_of_nobody_means_all_may_have_changed(house: House) -> None:
    for last_id in ("0badcafe-1", "nonsense", "-", "1-" + "9" * 40, "é".encode().decode("latin-1")):
        async with watching(house, last_id=last_id) as watcher:
            assert (await watcher.next()).parts == set(EVERYTHING)


async def test_a_stranger_is_told_nothing(house: House) -> None:
    problem_of(await house.ask("GET", "/v1/events"))
    assert (await house.ask("GET", "/v1/events")).status == 401


async def test_asking_for_the_head_does_not_wait(house: House) -> None:
    token = f"Bearer {house.keys.operator_token}"
    assert (await house.ask("HEAD", "/v1/events", Authorization=token)).status == 200


async def test_as_many_as_may_watch_are_all_told_and_one_more_is_put_off(house: House) -> None:
    token = house.keys.operator_token
    async with AsyncExitStack() as stack:
        opening = (
            stack.enter_async_context(viewer(house.port, token=token)) for _ in range(MOST_VIEWERS)
        )
        watchers = await asyncio.gather(*opening)
        await asyncio.gather(*(watcher.next() for watcher in watchers))
        refused = await house.operator("/v1/events")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "30")
        problem_of(refused)
        await house.job()
        told = await asyncio.gather(*(watcher.until("job:1") for watcher in watchers))
        assert len(told) == MOST_VIEWERS
        numbers = (await house.operator("/metrics")).text
        assert f"event_streams_open {MOST_VIEWERS}.0" in numbers


async def test_streams_end_when_the_gateway_stops_and_say_so(tmp_path: Path) -> None:
    house, stop = await start(tmp_path)
    async with watching(house) as watcher:
        await watcher.next()
        stopping = asyncio.create_task(stop())
        last = await watcher.next()
        assert (last.event, last.data) == ("goodbye", {"reason": "the gateway is stopping"})
        assert await watcher.message() is None
        await asyncio.wait_for(stopping, 2)


async def test_a_slow_viewer_is_dropped_and_told_and_others_hear_all_the_same() -> None:
    changes, dropped = Changes(interval_s=0), asyncio.Event()
    long = [f"device:{'x' * 60}{n}" for n in range(MOST_NAMED)]
    async with (
        bare(changes, slow_s=0.3, on_dropped=dropped.set) as port,
        viewer(port) as quick,
        viewer(port, receives=4096) as slow,
    ):
        await quick.next()
        async with asyncio.timeout(GIVE_UP_S):
            while not dropped.is_set():
                changes.mark(*long)
                await quick.next()
            last = await slow.next()
            while last.event == "changed":
                last = await slow.next()
        assert (last.event, last.data) == ("goodbye", {"reason": "too slow"})
        assert await slow.message() is None
        changes.mark("jobs")
        await quick.until("jobs")
        assert changes.viewers == 1


async def test_a_viewer_that_never_reads_again_is_hung_up_on() -> None:
    changes, dropped = Changes(interval_s=0), asyncio.Event()
    long = [f"device:{'x' * 60}{n}" for n in range(MOST_NAMED)]
    async with (
        bare(changes, slow_s=0.1, on_dropped=dropped.set) as port,
        viewer(port, receives=4096),
        viewer(port) as quick,
    ):
        await quick.next()
        async with asyncio.timeout(GIVE_UP_S):
            while changes.viewers == 2:
                changes.mark(*long)
                await quick.next()
    assert dropped.is_set()


async def test_a_viewer_that_does_not_read_does_not_hold_up_the_stop() -> None:
    changes = Changes(interval_s=0)
    long = [f"device:{'x' * 60}{n}" for n in range(MOST_NAMED)]
    clock = asyncio.get_running_loop().time
    async with AsyncExitStack() as gateway:
        port = await gateway.enter_async_context(bare(changes, slow_s=GIVE_UP_S))
        async with viewer(port, receives=4096), viewer(port) as quick:
            await quick.next()
            for _ in range(100):  # more than both systems hold
                changes.mark(*long)
                await quick.next()
            begun = clock()
            await gateway.aclose()
    assert clock() - begun < 2 * GRACE_S


async def test_silence_is_broken_by_comments() -> None:
    changes = Changes()
    async with bare(changes, keep_alive_s=0.05) as port, viewer(port) as watcher:
        await watcher.next()
        assert await asyncio.wait_for(watcher.block(), GIVE_UP_S) == ": ping"


async def test_too_many_names_become_one_for_all_of_their_sort() -> None:
    changes = Changes(interval_s=0)
    with changes.watched():
        changes.moved([Move(n, "claim", State.RUNNING, "act") for n in range(MOST_NAMED + 1)])
        await changes.news()
        change = changes.after(0)
    assert change is not None
    assert change.parts == ("headline", "job:*", "jobs")
    changes.close()


async def test_what_has_left_the_ring_means_all_may_have_changed() -> None:
    changes = Changes(interval_s=0)
    with changes.watched():
        for _ in range(MOST_KEPT + 1):
            changes.mark("jobs")
            await changes.news()
        since_0, since_1 = changes.after(0), changes.after(1)
    assert since_0 is not None
    assert set(since_0.parts) == set(EVERYTHING)
    assert since_1 is not None
    assert since_1.parts == ("jobs",)
    changes.close()


async def test_nothing_is_gathered_while_nobody_watches() -> None:
    changes = Changes()
    changes.mark("jobs")
    assert not changes.is_awake
    assert changes.after(0) is None


def test_the_look_at_the_moves_does_not_grow_with_the_table(tmp_path: Path) -> None:
    sql = queries.load("tail")
    with closing(connect(str(tmp_path / "fieldpost.db"))) as connection:
        for block in (sql.newest, sql.moves_after, sql.progress):
            given = {"after": 0, "limit": 1}
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {block}", given)]
            assert not [step for step in plan if "TEMP B-TREE" in step]
            scans = [step for step in plan if step.startswith("SCAN")]
            assert all("jobs_for_rescue" in step for step in scans), plan
