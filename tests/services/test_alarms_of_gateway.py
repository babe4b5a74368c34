"""Alarms about readings, jobs and the gateway itself, and who is told. Every clock is given."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.alarm_notices import Notices
from gateway.errors import Misconfigured
from gateway.events import AlarmClosed, AlarmOpened
from gateway.outcomes import Done, Failed
from gateway.states import State
from gateway.store import alarms, jobs
from gateway.store.jobs import Asked, Ended, Queue
from gateway.store.readings import CONFLICT
from gateway.tables import Notify
from tests.services.watched import KINDS, Watched, watched

GAP = ("gap", "esp32-1")
CONFLICTS = ("conflict", "esp32-1")
STALLED = ("queue_stalled", "queue")
STEPPED = ("clock_stepped", "gateway")
FAILED = ("job_failed", "act")
NOTIFY = {"email": ["someone@example.org"], "webhook": "http://127.0.0.1:1/hook", "quiet_s": 600}


async def ask(site: Watched, count: int = 1) -> list[int]:
    def work(connection: Any) -> list[int]:
        asked = Asked("act", "{}")
        return [site.queue.enqueue(connection, asked, site.wall_ms)[0] for _ in range(count)]

    found: list[int] = await site.write(work)
    return found


async def do(site: Watched, outcome: Any) -> int:
    """Take a job and end it."""

    def work(connection: Any) -> int:
        job = site.queue.claim(connection, site.now(), "w", frozenset({"act"}))
        assert job is not None
        assert site.queue.end(connection, site.now(), Ended(job.id, job.token, outcome))
        return job.id

    done: int = await site.write(work)
    return done


async def test_a_gap_is_an_alarm_after_a_while_and_until_it_is_filled(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        await site.deliver("esp32-1", 1, 5)
        assert await site.look() == []
        await site.pass_s(28)
        assert await site.open() == []
        await site.pass_s(2)
        assert await site.open() == [GAP]
        await site.deliver("esp32-1", 3)
        assert await site.look() == [GAP]
        [(detail,)] = await site.rows("SELECT detail FROM alarm")
        assert detail == "2 readings are missing: 2, 4 of 7f3a17c21"
        await site.deliver("esp32-1", 2, 4)
        assert await site.look() == []


async def test_readings_out_of_order_are_no_gap_however_often(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        await site.deliver("esp32-1", 2)
        for number in range(1, 60, 2):  # something is missing at every look, never the same
            await site.deliver("esp32-1", number + 3)
            await site.deliver("esp32-1", number)
            await site.pass_s(2)
            assert await site.open() == []


async def test_a_gap_is_over_when_the_device_says_that_it_is_lost(tmp_path: Path) -> None:
    async with watched(tmp_path, gap_after_s=0) as site:
        await site.deliver("esp32-1", 1, 5)
        assert await site.look() == [GAP]
        await site.deliver(lost=[{"boot": "7f3a17c21", "from": 2, "to": 4}])
        assert await site.look() == []


async def test_a_conflict_opens_its_alarm_in_the_transaction_that_found_it(tmp_path: Path) -> None:
    async with watched(tmp_path, quiet_h=24) as site:
        await site.deliver("esp32-1", 1)
        await site.deliver("esp32-1", 1, value=2.0)
        assert await site.open() == [CONFLICTS]
        await site.deliver("esp32-1", 1, value=3.0)
        assert await site.rows("SELECT times, last_at_ms FROM alarm") == [(2, site.wall_ms)]
        site.skip_s(86_399)
        site.start()
        assert CONFLICTS in await site.look()
        site.skip_s(1)
        assert CONFLICTS not in await site.look()


async def test_the_reason_of_a_conflict_is_the_one_that_the_trigger_knows(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        [(sql,)] = await site.rows("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
        assert f"'{CONFLICT}'" in sql


async def test_another_rejection_is_no_conflict(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        await site.deliver(readings=[{"id": "x", "sensor": "s", "value": "no number"}])
        assert await site.rows("SELECT count(*) FROM quarantine") == [(1,)]
        assert await site.look() == []


async def test_a_queue_is_stalled_when_jobs_are_due_and_none_ends(tmp_path: Path) -> None:
    async with watched(tmp_path, stalled_after_s=300) as site:
        await ask(site, 1000)
        for _ in range(5):  # many are due, and they get on
            await site.pass_s(200, every_s=10)
            await do(site, Done())
        assert await site.look() == []
        await site.pass_s(298)
        assert await site.open() == []
        await site.pass_s(2)
        assert await site.open() == [STALLED]
        site.start()
        assert await site.look() == [STALLED]
        await do(site, Done())
        assert await site.look() == []


async def test_a_queue_without_due_jobs_is_not_stalled(tmp_path: Path) -> None:
    async with watched(tmp_path, stalled_after_s=10) as site:
        await site.look()
        await site.pass_s(60)
        await ask(site)
        assert await site.look() == []
        await site.pass_s(8)
        assert await site.open() == []
        await site.pass_s(4)
        assert await site.open() == [STALLED]
        await site.write(lambda c: site.queue.cancel(c, 1, site.wall_ms))
        assert await site.look() == []


async def test_a_job_that_gets_on_stalls_nothing(tmp_path: Path) -> None:
    async with watched(tmp_path, stalled_after_s=10) as site:
        await ask(site, 2)
        job = await site.write(lambda c: site.queue.claim(c, site.now(), "w", frozenset({"act"})))
        for percent in range(1, 12):
            await site.write(
                lambda c, p=percent: site.queue.renew(c, site.now(), *job[0::3][:2], p)
            )
            await site.pass_s(6)
            assert await site.open() == []
        await site.pass_s(12)
        assert await site.open() == [STALLED]


async def test_a_step_of_the_clock_stalls_no_queue(tmp_path: Path) -> None:
    async with watched(tmp_path, clock_step_s=10**6) as site:
        await ask(site)
        await site.look()
        site.step_s(86_400)
        assert await site.look() == []


async def test_a_failed_job_opens_its_alarm_at_once_and_closes_it_with_the_last(
    tmp_path: Path,
) -> None:
    async with watched(tmp_path) as site:
        first, second = await ask(site, 2)
        await do(site, Failed("no such file", permanent=True))
        assert await site.open() == [FAILED]
        await do(site, Failed("again", permanent=True))
        [(detail, times)] = await site.rows("SELECT detail, times FROM alarm")
        assert (detail, times) == (f"job {second}: again", 2)
        await site.write(lambda c: site.queue.retry(c, first, site.wall_ms))
        assert await site.open() == [FAILED]
        await site.write(lambda c: site.queue.discard(c, second, site.wall_ms))
        assert await site.open() == []


async def test_a_failed_job_that_was_pruned_is_no_alarm(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        await ask(site)
        await do(site, Failed("x", permanent=True))
        failed = frozenset({State.FAILED})
        later_ms = site.wall_ms + 1
        await site.write(lambda c: jobs.prune(c, failed, later_ms, now_ms=later_ms))
        assert await site.open() == []
        await ask(site)
        await do(site, Failed("x", permanent=True))
        await site.write(lambda c: c.execute("DELETE FROM job").rowcount)
        assert await site.look() == []


async def test_the_disk_is_low_until_there_is_clearly_more(tmp_path: Path) -> None:
    async with watched(tmp_path, disk_low_bytes=1000 * 1024**2) as site:
        for free_mib, found in [(1000, 0), (999, 1), (1050, 1), (1100, 0)]:
            site.free_bytes = free_mib * 1024**2
            assert len(await site.look()) == found


@pytest.mark.parametrize("step_s", [-3600, 3600])
async def test_a_step_of_the_clock_is_told_and_moves_the_quiet(tmp_path: Path, step_s: int) -> None:
    async with watched(tmp_path, quiet_h=0.5) as site:
        await site.look()
        site.step_s(0.5)
        assert await site.look() == []
        site.step_s(step_s)
        assert await site.look() == [STEPPED]
        site.step_s(-step_s)
        assert await site.look() == [STEPPED]
        await site.pass_s(1798, every_s=10)
        assert await site.open() == [STEPPED]
        await site.pass_s(4)
        assert await site.open() == []


async def test_a_damaged_database_stays_an_alarm_until_a_person_closes_it(tmp_path: Path) -> None:
    async with watched(tmp_path, quiet_h=1) as site:
        await site.write(lambda c: alarms.open_alarm(c, "database_damaged", "x", "d", site.wall_ms))
        site.skip_s(10**7)
        assert await site.look() == [("database_damaged", "x")]
        assert await site.write(lambda c: alarms.close_alarm(c, 1, site.wall_ms, "me"))
        assert await site.look() == []


async def test_whoever_watches_hears_what_opened_and_closed_whoever_did_it(tmp_path: Path) -> None:
    async with watched(tmp_path, gap_after_s=0) as site:
        await site.look()
        await site.deliver("esp32-1", 1, 3)
        await site.look()
        assert site.told == [AlarmOpened(*GAP)]
        await site.write(lambda c: alarms.close_open(c, *GAP, site.wall_ms))
        await site.deliver("esp32-1", 2)
        await site.look()
        assert site.told == [AlarmOpened(*GAP), AlarmClosed(*GAP)]
        site.start()
        await site.look()
        assert len(site.told) == 2


async def jobs_of(site: Watched) -> list[tuple[str, Any]]:
    rows = await site.rows("SELECT kind, args FROM job ORDER BY id")
    return [(kind, json.loads(args)) for kind, args in rows]


async def test_each_opening_is_told_once_by_mail_and_webhook(tmp_path: Path) -> None:
    async with watched(tmp_path, gap_after_s=0, notify=Notify(**NOTIFY)) as site:
        await site.deliver("esp32-1", 1, 3)
        await site.deliver("esp32-2", 1, 3)
        for _ in range(3):
            await site.look()
        (_, mail), (_, hook) = await jobs_of(site)
        assert mail["to"] == ["someone@example.org"]
        assert mail["subject"] == "Fieldpost: Readings are missing: esp32-1 and 1 more"
        assert "esp32-2" in mail["text"]
        assert [one["subject"] for one in hook["payload"]["alarms"]] == ["esp32-1", "esp32-2"]
        assert site.woken == 1
        for kind, args in await jobs_of(site):
            KINDS[kind].decode(json.dumps(args))
        site.start(gap_after_s=0, notify=Notify(**NOTIFY))
        await site.look()
        assert len(await jobs_of(site)) == 2


async def test_an_alarm_that_flaps_is_told_again_only_after_a_quiet_time(tmp_path: Path) -> None:
    notify = Notify(webhook="http://127.0.0.1:1/", quiet_s=600)
    settings = {"gap_after_s": 0, "notify": notify, "stalled_after_s": 10**6}
    async with watched(tmp_path, interval_s={"esp32-1": 10**6}, **settings) as site:
        for number in range(1, 40, 2):
            await site.deliver("esp32-1", number, number + 2)
            await site.look()
            await site.deliver("esp32-1", number + 1)
            await site.pass_s(10)
        assert len(await jobs_of(site)) == 1
        await site.deliver("esp32-1", 100)
        await site.pass_s(398)
        assert len(await jobs_of(site)) == 1
        await site.pass_s(4)  # it is open still: then it is told all the same
        assert len(await jobs_of(site)) == 2


def test_notices_that_can_not_be_sent_are_refused_at_the_start() -> None:
    with pytest.raises(Misconfigured, match="smtp"):
        Notices(Notify(email=["a@example.org"]), Queue(), KINDS, has_smtp=False)
    with pytest.raises(Misconfigured, match=r"alarms\.notify"):
        Notices(Notify(email=["nobody"]), Queue(), KINDS, has_smtp=True)
    with pytest.raises(Misconfigured, match=r"alarms\.notify"):
        Notices(Notify(webhook="ftp://x"), Queue(), KINDS, has_smtp=False)


async def test_what_is_over_is_kept_for_a_while_only(tmp_path: Path) -> None:
    async with watched(tmp_path, gap_after_s=0) as site:
        await site.deliver("esp32-1", 1, 3)
        await site.look()
        await site.deliver("esp32-1", 2)
        await site.look()
        site.skip_s(30 * 86_400 - 60)
        await site.look()
        assert (await site.rows("SELECT kind FROM alarm WHERE kind = 'gap'")) == [("gap",)]
        site.skip_s(120)
        await site.look()
        assert (await site.rows("SELECT kind FROM alarm WHERE kind = 'gap'")) == []
