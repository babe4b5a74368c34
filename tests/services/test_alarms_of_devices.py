"""Alarms about devices: silent, drops reported, possible clone. Every clock is given."""

from pathlib import Path

import pytest

from gateway.device_rules import comes_back
from tests.services.watched import BOOT, watched

SILENT = ("device_silent", "esp32-1")
DROPS = ("drops_reported", "esp32-1")
CLONE = ("possible_clone", "esp32-1")
EVERY_10_S = {"health": {"period_ms": 10_000}}


@pytest.mark.parametrize(
    ("health", "settings", "limit_s"),
    [
        ({"period_ms": 60_000}, {}, 180),
        ({"period_ms": 100}, {}, 30),
        ({"period_ms": 3_600_000}, {}, 900),  # a heartbeat comes every five minutes
        ({}, {}, 900),
        ({"period_ms": 60_000}, {"silent_after": 5}, 300),
        ({"period_ms": 60_000}, {"interval_s": {"esp32-1": 7}}, 21),
        ({"period_ms": 100}, {"shortest_interval_s": 1}, 3),
    ],
)
async def test_a_device_is_silent_after_three_expected_intervals(
    tmp_path: Path, health: dict[str, int], settings: dict[str, object], limit_s: int
) -> None:
    async with watched(tmp_path, **settings) as site:
        await site.deliver(health=health)
        await site.look()
        await site.pass_s(limit_s)
        assert await site.open() == []
        await site.pass_s(1)
        assert await site.open() == [SILENT]
        await site.deliver(health=health)
        assert await site.look() == []


async def test_a_gateway_that_was_off_makes_nobody_silent(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        for number in range(5):
            await site.deliver(f"esp32-{number}", **EVERY_10_S)
        await site.look()
        site.skip_s(86_400)
        site.start()
        assert await site.look() == []
        await site.pass_s(30)
        assert await site.open() == []
        await site.pass_s(2)
        assert len(await site.open()) == 5


async def test_a_silent_device_stays_so_through_a_restart_until_it_is_heard(
    tmp_path: Path,
) -> None:
    async with watched(tmp_path) as site:
        await site.deliver(**EVERY_10_S)
        await site.look()
        await site.pass_s(32)
        site.start()
        assert await site.look() == [SILENT]
        await site.pass_s(60)
        assert await site.open() == [SILENT]
        await site.deliver(**EVERY_10_S)  # before the new gateway looks for the first time
        site.start()
        assert await site.look() == []


@pytest.mark.parametrize("step_s", [-86_400, 86_400])
async def test_a_step_of_the_wall_clock_makes_nobody_silent_and_hides_no_silence(
    tmp_path: Path, step_s: int
) -> None:
    async with watched(tmp_path, clock_step_s=10**6) as site:
        await site.deliver(**EVERY_10_S)
        await site.look()
        await site.pass_s(10)
        site.step_s(step_s)
        assert await site.look() == []
        await site.pass_s(22)
        assert await site.open() == [SILENT]


async def test_time_in_which_nobody_could_be_heard_is_no_silence(tmp_path: Path) -> None:
    async with watched(tmp_path, disk_low_bytes=0) as site:
        await site.deliver(**EVERY_10_S)
        await site.look()
        site.free_bytes = 0  # every delivery is put off
        await site.pass_s(120)
        assert await site.open() == [("disk_low", "gateway")]
        site.free_bytes = 10**12
        await site.pass_s(10)
        assert await site.open() == []
        site.skip_s(3600)  # the process was stopped
        assert await site.look() == []
        await site.pass_s(32)
        assert await site.open() == [SILENT]


async def test_the_interval_is_learned_of_a_device_that_tells_none(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        for number in range(1, 7):  # in pairs, every 20 min: longer than any heartbeat
            await site.deliver("esp32-1", number)
            await site.pass_s(2)
            await site.deliver("esp32-1", number + 100)
            await site.pass_s(1198, every_s=10)
        [(learned_ms,)] = await site.rows("SELECT interval_ms FROM device_watch")
        assert 1_190_000 <= learned_ms <= 1_210_000
        site.start()
        await site.look()
        await site.pass_s(3500, every_s=10)
        assert SILENT not in await site.open()
        await site.pass_s(120, every_s=10)
        assert SILENT in await site.open()


async def test_a_device_that_is_no_more_is_not_silent(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        await site.deliver(**EVERY_10_S)
        await site.look()
        await site.pass_s(32)
        await site.write(
            lambda c: [c.execute(f"DELETE FROM {t}").rowcount for t in ("sensor", "boot", "device")]
        )
        assert await site.look() == []


async def test_a_device_that_never_reported_is_not_silent(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        await site.write(
            lambda c: c.execute("INSERT INTO device (name, added_at_ms) VALUES ('x', 1)").rowcount
        )
        await site.pass_s(3600, every_s=10)
        assert await site.open() == []


async def test_drops_are_told_when_their_number_rises(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        for dropped, detail in [(0, None), (3, "3 readings"), (3, None), (5, "2 readings")]:
            await site.deliver(health={"dropped": dropped})
            site.start()  # what is known of it outlives the gateway
            found = await site.look()
            if detail:
                assert found == [DROPS]
                [(told,)] = await site.rows("SELECT detail FROM alarm")
                assert told.startswith(detail)
        assert await site.rows("SELECT times FROM alarm") == [(2,)]


async def test_a_flash_that_was_erased_reports_no_drops(tmp_path: Path) -> None:
    async with watched(tmp_path, quiet_h=1) as site:
        await site.deliver(health={"dropped": 9})
        await site.look()
        await site.pass_s(3600, every_s=10)
        await site.deliver(health={"dropped": 0})
        assert DROPS not in await site.look()
        await site.deliver(health={"dropped": 1})
        assert DROPS in await site.look()


async def test_starts_that_come_in_turns_are_a_possible_clone(tmp_path: Path) -> None:
    other = "00112233" + "7"
    async with watched(tmp_path) as site:
        await site.deliver("esp32-1", 1, 2)
        await site.look()
        await site.deliver("esp32-1", 1, 2, boot=other)
        assert await site.look() == []  # a board whose boot file was torn does so too
        await site.deliver("esp32-1", 3, 4)
        assert await site.look() == [CLONE]


async def test_a_nonce_that_comes_back_after_another_is_a_possible_clone(tmp_path: Path) -> None:
    async with watched(tmp_path) as site:
        for boot in ("aaaaaaaa1", "bbbbbbbb1", "bbbbbbbb2"):
            await site.deliver(boot=boot)
            site.start()
            assert await site.look() == []
        await site.deliver(boot="aaaaaaaa2")
        assert await site.look() == [CLONE]


async def test_one_board_that_starts_again_and_drains_its_outbox_is_no_clone(
    tmp_path: Path,
) -> None:
    first, second, third = "aaaaaaaa1", "aaaaaaaa2", "bbbbbbbb1"
    async with watched(tmp_path, gap_after_s=10**6) as site:
        await site.deliver("esp32-1", 1, 2, boot=first)
        await site.look()
        for boot, of, number in [
            (second, first, 3), (second, first, 4), (second, second, 1),
            (third, second, 2), (third, third, 1), (third, third, 2),
        ]:  # fmt: skip
            await site.deliver("esp32-1", number, boot=boot, of=of)
            assert await site.look() == []


def test_a_name_comes_back_only_after_another() -> None:
    assert comes_back([BOOT, "b", BOOT])
    assert not comes_back([BOOT, BOOT, "b", "b", "c"])
    assert not comes_back([])
