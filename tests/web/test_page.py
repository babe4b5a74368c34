"""The operator's page: each of its parts says what is true, in the reader's language."""

import base64
import hashlib
import html
import re
from typing import Any

import pytest

from gateway.aggregate import Aggregator
from gateway.store import alarms, facts
from gateway.store.facts import Fact
from gateway.tables import Alarms
from tests.web.conftest import Open
from tests.web.house import BOOT, NOW_MS, House, batch, body

JSON = {"Content_Type": "application/json"}
HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
HOUR_MS = 3_600_000


async def deliver(house: House, sent: Any) -> None:
    assert (await house.ask("POST", "/v1/readings", body(sent), **JSON)).status == 200


async def page(house: House, target: str = "/status", language: str = "en") -> str:
    answer = await house.ask("GET", target, Accept=HTML, Accept_Language=language)
    assert answer.status == 200, answer.text
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return answer.text


def said(markup: str) -> str:
    """Return what a person reads."""
    text = re.sub(r"<[^>]*>", " ", markup.partition("<body>")[2] or markup)
    return re.sub(r"\s+", " ", html.unescape(text))


async def aggregated(house: House) -> None:
    aggregator = Aggregator(house.db, {})
    while await aggregator.run_once():
        pass


PAGES = ("/status", "/status/jobs", "/status/jobs/1", "/status/devices/esp32-1", "/status/ask")


@pytest.fixture
async def full(open_mode: House) -> House:
    """A gateway with a device, a job and an alarm."""
    await deliver(open_mode, batch(count=3))
    await aggregated(open_mode)
    assert (await open_mode.job()).status == 202
    await open_mode.db.write(
        lambda c: alarms.open_alarm(c, "database_damaged", "x.db", "moved aside", NOW_MS)
    )
    return open_mode


@pytest.mark.parametrize("language", ["en", "pt"])
async def test_every_page_is_in_the_language_of_its_reader(full: House, language: str) -> None:
    for target in (*PAGES, "/status/alarms/1"):
        shown = await page(full, target, language)
        assert f'<html lang="{language}"' in shown
        assert ("Pedir trabalho" if language == "pt" else "Ask for work") in shown


async def test_every_page_allows_nothing_that_is_not_its_own(full: House) -> None:
    for target in (*PAGES, "/status/alarms/1", "/status/parts/jobs"):
        answer = await full.ask("GET", target, Accept=HTML)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        assert not re.search(r"<style|style=|\son\w+=|https?://|<script>", answer.text)
        for asset in re.findall(r'(?:src|href)="(/page/[^"]+)"', answer.text):
            assert (await full.ask("GET", asset)).status == 200


async def test_every_instant_says_the_exact_one(full: House) -> None:
    full.now_ms[0] += 61_000
    for target in (*PAGES, "/status/alarms/1"):
        for datetime, title, shown in re.findall(
            r'<time datetime="([^"]+)" title="([^"]+)" data-show="\w+">([^<]+)<',
            await page(full, target),
        ):
            assert datetime == title
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", datetime)
            assert re.fullmatch(r"now|\d+ \w+ ago|.* UTC", shown)


async def test_a_part_is_what_the_page_has_inside(full: House) -> None:
    whole = await page(full)
    for part in ("headline", "alarms", "devices", "jobs"):
        assert (await page(full, f"/status/parts/{part}")).strip() in whole, part
    assert "Disk left" in await page(full, "/status/parts/gateway")
    assert (await page(full, "/status/parts/job:1")).strip() in await page(full, "/status/jobs/1")
    device = await page(full, "/status/devices/esp32-1")
    assert (await page(full, "/status/parts/device:esp32-1")).strip() in device


@pytest.mark.parametrize("part", ["", "x", "job:", "job:9", "job:x", "device:nobody", "devices:1"])
async def test_what_is_no_part_is_not_found(full: House, part: str) -> None:
    assert (await full.ask("GET", f"/status/parts/{part}")).status == 404


async def test_without_a_script_the_page_reads_itself_anew_but_no_form_does(full: House) -> None:
    refresh = '<noscript><meta http-equiv="refresh" content="10"></noscript>'
    for target in ("/status", "/status/jobs/1", "/status/devices/esp32-1"):
        assert refresh in await page(full, target)
    for target in ("/status/ask", "/status/alarms/1"):
        assert "http-equiv" not in await page(full, target)


async def test_an_alarm_says_what_it_means_and_what_to_do(full: House) -> None:
    shown = said(await page(full, "/status/parts/alarms"))
    assert "The database was damaged : x.db" in shown
    assert "moved aside" in shown
    assert "What was stored before is not shown" in shown
    assert "bring back a backup" in shown
    assert "Reponha" not in shown
    assert "reponha uma cópia" in said(await page(full, "/status/parts/alarms", "pt"))


async def test_a_stalled_queue_is_said_in_the_headline(open_mode: House) -> None:
    await open_mode.db.write(
        lambda c: alarms.open_alarm(c, "queue_stalled", "queue", "oldest due 9 min ago", NOW_MS)
    )
    assert "Look here: the queue is stalled" in said(
        await page(open_mode, "/status/parts/headline")
    )
    shown = said(await page(open_mode, "/status/parts/headline", "pt"))
    assert "Veja isto: a fila está parada" in shown


async def test_the_headline_says_how_old_it_is(open_mode: House) -> None:
    shown = await page(open_mode, "/status/parts/headline")
    assert '<time datetime="2025-11-30T19:00:00.000Z"' in shown
    assert "All is well: no device has reported yet" in said(shown)


async def test_a_device_shows_its_health_and_its_last_day(open_mode: House) -> None:
    health = {"firmware": "1.0.0", "period_ms": 10_000, "outbox": 42, "dropped": 7, "rssi": -61,
              "heap_free": 81_234, "clock": "synced"}  # fmt: skip
    await deliver(open_mode, batch(count=1, first=1) | {"boot": BOOT, "seq": 1, "up_ms": 5})
    more = {"boot": BOOT, "seq": 2, "up_ms": 6, "health": health}
    await deliver(open_mode, batch(count=2, first=8) | more)
    await aggregated(open_mode)
    shown = said(await page(open_mode, "/status/parts/devices"))
    for expected in ("esp32-1", "every 10 s", " 42 ", " 7 ", "missing 2-7", "-61 dBm", "79.3 KiB",
                     "1.0.0", "synced", "dht22.temperature", "29 Cel"):  # fmt: skip
        assert expected in shown, expected
    spark = await page(open_mode, "/status/parts/devices")
    assert 'aria-label="dht22.temperature: 21 to 29 in the last 24 hours"' in spark


async def test_what_was_sent_again_is_counted_for_an_hour(open_mode: House) -> None:
    sent = batch(count=5)
    for _ in range(3):
        await deliver(open_mode, sent)
    shown = said(await page(open_mode, "/status/devices/esp32-1"))
    assert "Sent again, 1 h 10 Sent again 10" in shown
    open_mode.now_ms[0] += HOUR_MS + 60_000
    shown = said(await page(open_mode, "/status/devices/esp32-1"))
    assert "Sent again, 1 h 0 Sent again 10" in shown


async def test_those_in_trouble_come_first_and_the_rest_page_by_page(open_mode: House) -> None:
    for number in range(52):
        await deliver(open_mode, batch(f"d{number:02}"))
    await deliver(open_mode, batch("d30", first=5))
    await open_mode.db.write(
        lambda c: alarms.open_alarm(c, "device_silent", "d40", "not heard for 1 h", NOW_MS)
    )
    first = await page(open_mode)
    names = re.findall(r'href="/status/devices/([^"/]+)"', first)
    assert names[:3] == ["d40", "d30", "d00"]
    assert len(names) == 50
    assert 'href="/status?page=2"' in first
    second = re.findall(r'href="/status/devices/([^"/]+)"', await page(open_mode, "/status?page=2"))
    assert second == ["d50", "d51"]


async def test_the_expected_interval_is_the_one_of_the_alarm(open_house: Open) -> None:
    table = Alarms(interval_s={"b": 90})
    house = await open_house(open=True, alarms=table)
    await deliver(house, batch("a") | {"health": {"period_ms": 60_000}})
    await deliver(house, batch("b") | {"health": {"period_ms": 60_000}})
    await deliver(house, batch("c"))
    shown = said(await page(house, "/status/parts/devices"))
    assert re.findall(r"(\w) (?:now|\d+ s ago) every (\d+ \w+(?: \d+ s)?)", shown) == [
        ("a", "1 min"), ("b", "1 min 30 s"), ("c", "5 min"),
    ]  # fmt: skip


async def test_the_page_of_a_device_has_its_readings_charts_and_quarantine(full: House) -> None:
    bad = {"id": f"esp32-1-{BOOT}-9", "sensor": "s", "value": "21.5"}
    await deliver(full, {"device": "esp32-1", "readings": [bad]})
    markup = await page(full, "/status/devices/esp32-1")
    shown = said(markup)
    assert "value is not a number" in shown or "value" in shown
    assert f"esp32-1-{BOOT}-3" in shown
    assert '"21.5"' in shown
    [chart] = re.findall(r'<img src="([^"]+)"', markup)
    answer = await full.ask("GET", chart)
    assert answer.headers["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert "3 21 22 23" in shown  # readings, least, mean, most


@pytest.mark.parametrize("span", ["day", "week", "month"])
async def test_a_chart_allows_only_its_own_style_and_no_script(full: House, span: str) -> None:
    answer = await full.ask("GET", f"/charts/1/{span}.svg")
    [style] = re.findall(r"<style[^>]*>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(html.unescape(style).encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; sandbox"
    assert not re.search(r"<script|style=|\son\w+=|xlink:href", answer.text)
    assert "dht22.temperature (Cel), UTC" in answer.text


@pytest.mark.parametrize("target", ["/charts/9/day.svg", "/charts/1/year.svg", "/charts/x/day.svg"])
async def test_there_is_no_chart_of_what_there_is_not(full: House, target: str) -> None:
    assert (await full.ask("GET", target)).status == 404


async def test_the_gateway_says_how_it_is(open_mode: House) -> None:
    shown = said(await page(open_mode, "/status/parts/gateway"))
    assert "Last backup never" in shown
    await open_mode.db.write(
        lambda c: facts.put(c, facts.LAST_BACKUP, Fact("1000", NOW_MS - HOUR_MS))
    )
    open_mode.now_ms[0] += 1000
    shown = said(await page(open_mode))
    assert "Last backup 1 h ago" in shown
    assert re.search(r"Database [\d.,]+ KiB", shown)


async def test_only_who_may_operate_sees_any_of_it(house: House) -> None:
    for target in (*PAGES, "/status/parts/jobs", "/charts/1/day.svg", "/status/alarms/1",
                   "/status/devices/esp32-1/readings.csv"):  # fmt: skip
        assert (await house.ask("GET", target)).status == 401, target
