"""`/v1/status`, `/v1/devices` and the page: what is said there is true."""

import html
import re
from typing import Any

import pytest

from gateway import __version__
from gateway.store import alarms
from tests.web.conftest import Open
from tests.web.house import BOOT, NOW_MS, House, batch, body
from tests.web.watch import watcher_of

JSON = {"Content_Type": "application/json"}
HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
NASTY = "<script>alert('&')</script>"


async def deliver(house: House, sent: Any) -> None:
    assert (await house.ask("POST", "/v1/readings", body(sent), **JSON)).status == 200


async def status(house: House) -> Any:
    return (await house.ask("GET", "/v1/status")).json


async def page(house: House) -> str:
    answer = await house.ask("GET", "/status", Accept=HTML)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return answer.text


def said(markup: str) -> str:
    """Return what a person reads."""
    text = re.sub(r"<[^>]*>", " ", markup.partition("<body>")[2])
    return html.unescape(re.sub(r"\s+", " ", text))


async def test_the_status_of_an_empty_gateway(open_mode: House) -> None:
    assert await status(open_mode) == {
        "ok": True,
        "headline": "no device has reported yet",
        "alarms": [],
        "devices": {"total": 0, "silent": 0},
        "readings": {"stored": 0, "duplicates": 0, "quarantined": 0, "missing": 0},
        "jobs": {"pending": 0, "running": 0, "failed": 0, "oldest_due_ms": None},
        "version": __version__,
    }


async def test_counts_say_what_became_of_every_reading(open_mode: House) -> None:
    bad = {"id": f"esp32-1-{BOOT}-9", "sensor": "s", "value": "21.5"}
    await deliver(open_mode, batch(count=3))
    await deliver(open_mode, batch(count=2))
    await deliver(open_mode, {"device": "esp32-1", "readings": [bad]})
    await watcher_of(open_mode, gap_after_s=0).run_once()
    found = await status(open_mode)
    assert found["readings"] == {"stored": 3, "duplicates": 2, "quarantined": 1, "missing": 5}
    assert (found["ok"], found["headline"]) == (False, "5 readings are missing")


@pytest.mark.parametrize(
    ("period_ms", "silent_after_ms"),
    [(60_000, 180_000), (100, 30_000), (3_600_000, 900_000), (None, 900_000)],
)
async def test_a_device_is_silent_after_missing_three_messages(
    open_mode: House, period_ms: int | None, silent_after_ms: int
) -> None:
    health = {} if period_ms is None else {"health": {"period_ms": period_ms}}
    await deliver(open_mode, batch(**health))
    watcher = watcher_of(open_mode)
    while open_mode.now_ms[0] < NOW_MS + silent_after_ms:
        await watcher.run_once()
        open_mode.now_ms[0] += 2000
    await watcher.run_once()
    assert (await status(open_mode))["devices"] == {"total": 1, "silent": 0}
    open_mode.now_ms[0] += 1
    await watcher.run_once()
    found = await status(open_mode)
    assert found["devices"] == {"total": 1, "silent": 1}
    assert (found["ok"], found["headline"]) == (False, "1 of 1 device is silent")
    devices = (await open_mode.ask("GET", "/v1/devices")).json["devices"]
    assert [device["silent"] for device in devices] == [True]


async def test_a_device_that_never_reported_is_not_called_silent(open_mode: House) -> None:
    await open_mode.register("esp32-1")
    open_mode.now_ms[0] += 10**10
    found = await status(open_mode)
    assert found["headline"] == "1 device registered, none has reported yet"
    assert found["devices"] == {"total": 1, "silent": 0}
    await open_mode.register("esp32-2")
    await deliver(open_mode, batch("esp32-3") | {"sent_ms": None})
    found = await status(open_mode)
    assert found["headline"] == "1 device is reporting, nothing is missing, 2 never reported"


async def test_an_open_alarm_is_shown_and_makes_the_status_not_ok(open_mode: House) -> None:
    await open_mode.db.write(
        lambda c: alarms.open_alarm(c, "database_damaged", "x.db", NASTY, NOW_MS)
    )
    closed = (
        "INSERT INTO alarm (id, kind, subject, detail, opened_at_ms, closed_at_ms)"
        " VALUES (9, 'gap', 'x', 'closed', 1, 2)"
    )
    await open_mode.db.write(lambda c: c.execute(closed).rowcount)
    found = await status(open_mode)
    assert found["ok"] is False
    assert found["headline"] == "1 alarm is open"
    assert found["alarms"] == [
        {
            "id": 1,
            "kind": "database_damaged",
            "subject": "x.db",
            "detail": NASTY,
            "opened_at_ms": NOW_MS,
        }
    ]
    assert NASTY in said(await page(open_mode))


async def test_the_page_gives_json_to_who_asks_for_it(open_mode: House) -> None:
    answer = await open_mode.ask("GET", "/status", Accept="application/json")
    assert answer.json == await status(open_mode)
    answer = await open_mode.ask("GET", "/status", Accept="application/json;q=0.5, text/html")
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_a_device_is_listed_with_all_it_said_of_itself(open_mode: House) -> None:
    health = {
        "firmware": "1.0.0", "period_ms": 10_000, "outbox": 42, "dropped": 7, "clock": "synced",
        "crash": "ValueError",
    }  # fmt: skip
    lost = [{"boot": BOOT, "from": 3, "to": 4}]
    first = {"boot": BOOT, "seq": 1, "up_ms": 5, "health": health, "lost": lost}
    await deliver(open_mode, batch(count=1, first=1) | first)
    await deliver(open_mode, batch(count=1, first=8) | {"boot": BOOT, "seq": 2, "up_ms": 6})
    found = (await open_mode.ask("GET", "/v1/devices")).json
    [device] = found["devices"]
    assert found["next"] is None
    assert device["device"] == "esp32-1"
    assert device["last_seen_ms"] == NOW_MS
    assert (device["boot"], device["boots"], device["has_key"]) == (BOOT, 1, False)
    assert device["health"]["outbox"] == 42
    assert (device["crash"], device["crash_ms"]) == ("ValueError", NOW_MS)
    assert device["gaps"] == [
        {"boot": BOOT, "from": 5, "to": 7},
        {"boot": BOOT, "from": 2, "to": 2},
    ]
    assert device["readings"] == {
        "stored": 2, "duplicates": 0, "quarantined": 0, "missing": 4, "lost": 2,
    }  # fmt: skip


async def test_devices_come_in_order_of_name_page_by_page(open_mode: House) -> None:
    for name in ("c", "a", "b"):
        await deliver(open_mode, batch(name))
    first = (await open_mode.ask("GET", "/v1/devices?limit=2")).json
    assert [device["device"] for device in first["devices"]] == ["a", "b"]
    rest = (await open_mode.ask("GET", f"/v1/devices?limit=2&after={first['next']}")).json
    assert [device["device"] for device in rest["devices"]] == ["c"]
    assert rest["next"] is None


async def test_many_gaps_are_counted_all_and_shown_in_part(open_mode: House) -> None:
    for first in range(1, 128, 64):
        readings = batch(count=128, first=1)["readings"][first : first + 63 : 2]
        await deliver(open_mode, {"device": "esp32-1", "readings": readings})
    [device] = (await open_mode.ask("GET", "/v1/devices")).json["devices"]
    assert len(device["gaps"]) == 20
    assert device["readings"]["missing"] == (await status(open_mode))["readings"]["missing"] == 64


async def test_the_banner_says_who_is_let_in(open_house: Open) -> None:
    closed = await open_house(folder="closed")
    shown = (await closed.operator("/status", Accept=HTML)).text
    assert "Open mode" not in shown
    assert "everybody on this machine" in await page(await open_house(folder="a", open=True))
    assert "everybody who can reach" in await page(await open_house(folder="b", open_lan=True))


async def test_the_root_leads_to_the_page(open_mode: House) -> None:
    answer = await open_mode.ask("GET", "/")
    assert (answer.status, answer.headers["Location"]) == (303, "/status")


async def test_a_reading_of_any_instant_can_be_shown(open_mode: House) -> None:
    ends = [
        {"id": f"x{n}", "sensor": "s", "value": 1, "at_ms": at_ms}
        for n, at_ms in enumerate((0, 4_102_444_800_000))
    ]
    await deliver(open_mode, {"device": "esp32-1", "sent_ms": 4_102_444_800_000, "readings": ends})
    await deliver(
        open_mode, {"device": "esp32-2", "sent_ms": 0, "readings": [ends[1] | {"id": "y"}]}
    )
    assert "esp32-2" in await page(open_mode)


async def test_a_gateway_that_can_not_store_does_not_say_that_all_is_well(
    open_house: Open,
) -> None:
    house = await open_house(open=True, min_free_bytes=2**50)
    found = await status(house)
    assert found["ok"] is False
    assert "no reading can be stored" in found["headline"]
    assert "no reading can be stored" in said(await page(house))
