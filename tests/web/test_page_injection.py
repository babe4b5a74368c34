"""Whatever others wrote shows as text: in the pages and in what is downloaded."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from typing import Any

import pytest

from gateway.aggregate import Aggregator
from gateway.store import alarms
from tests.web.conftest import Open
from tests.web.house import NOW_MS, House, batch
from tests.web.test_page import deliver, page

NASTY = [
    "<script>alert('&')</script>",
    "\"><img src=x onerror=alert(1)>' onload='x",
    "{{ 7 * 7 }}{% raw %}",
    "a\u202egnp.exe\u2066",
    "nul\x00 bell\x07 line\r\nforged",
    "</textarea></option></title><b>",
    "x" * 10_000,
]
ADDRESSES = ("/status", "/status/jobs", "/status/jobs/1", "/status/alarms/1")
ALLOWED = {"href", "src", "action"}


class Reader(HTMLParser):
    """Gathers what a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.titles = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.titles += "".join(value or "" for name, value in attrs if name == "title")

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    return reader


async def planted(house: House, nasty: str) -> None:
    """Put the text wherever anybody can write one, past all that would refuse it."""
    await deliver(house, batch(count=2))
    aggregator = Aggregator(house.db, {})
    while await aggregator.run_once():
        pass
    await house.job()
    health = '{"firmware": %s, "clock": %s, "rssi": %s, "outbox": %s}'
    encoded = json.dumps(nasty)
    told = {"t": nasty.replace("\x00", "\x01"), "now": NOW_MS, "health": health % ((encoded,) * 4)}
    statements = [
        "UPDATE device SET name = :t, health = :health, crash = :t, crash_at_ms = :now, boot = :t",
        "UPDATE sensor SET name = :t",
        "UPDATE reading SET unit = :t",
        "UPDATE reading SET value = NULL, text = :t WHERE id = 1",
        "UPDATE reading SET value = NULL, error = :t WHERE id = 2",
        "UPDATE job SET kind = :t, stage = :t, error = :t, result = :t, request_id = :t,"
        " args = json_object('x', :t), state = 'failed', finished_at_ms = :now",
        "UPDATE job_event SET detail = :t, worker = :t",
        "INSERT INTO quarantine (digest, device, reason, body, received_at_ms)"
        " VALUES (x'00', :t, :t, :t, :now)",
    ]

    def plant(connection: Any) -> None:
        for statement in statements:
            connection.execute(statement, told)
        alarms.open_alarm(connection, told["t"], told["t"], told["t"], NOW_MS)
        alarms.acknowledge(connection, 1, NOW_MS, told["t"], told["t"])

    await house.db.write(plant)


async def pages(house: House) -> list[str]:
    """Return each page; that of the device under a name that one can have."""
    shown = [await page(house, there) for there in ADDRESSES]
    await house.db.write(lambda c: c.execute("UPDATE device SET name = 'esp32-1'").rowcount)
    await house.db.write(lambda c: c.execute("UPDATE quarantine SET device = 'esp32-1'").rowcount)
    return [*shown, await page(house, "/status/devices/esp32-1")]


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
async def test_whatever_others_wrote_is_text_on_every_page(open_mode: House, nasty: str) -> None:
    await planted(open_mode, nasty)
    for markup in await pages(open_mode):
        found = read(markup)
        assert found.tags.count("script") == 1
        assert "b" not in found.tags
        assert not {name for name, _ in found.attributes if name.startswith("on")}
        for name, value in found.attributes:
            if name in ALLOWED:
                assert value is not None
                assert re.match(r"/[a-z]|#main", value), (name, value)
        body = markup.partition("<body>")[2]
        assert not re.search(r".{0,80}[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", body)
        assert "49" not in found.text or "{{" not in nasty


async def test_a_long_name_is_cut_and_whole_in_its_title(open_mode: House) -> None:
    await planted(open_mode, NASTY[-1])
    found = read(await page(open_mode))
    assert "x" * 301 not in found.text
    assert "x" * 10_000 in found.titles


async def test_a_chart_of_a_nasty_sensor_is_an_image_all_the_same(open_mode: House) -> None:
    await planted(open_mode, NASTY[4])
    answer = await open_mode.ask("GET", "/charts/1/day.svg")
    assert ElementTree.fromstring(answer.text).tag.endswith("svg")


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x")', "=1\n=2"]


@pytest.mark.parametrize("formula", FORMULAS)
async def test_no_download_holds_a_formula(open_mode: House, formula: str) -> None:
    await deliver(open_mode, batch(count=3))
    told = {"t": formula}
    for statement in (
        "UPDATE sensor SET name = :t",
        "UPDATE reading SET unit = :t, value = NULL, text = :t WHERE id = 1",
        "UPDATE reading SET value = -5.5 WHERE id = 2",
    ):
        await open_mode.db.write(lambda c, s=statement: c.execute(s, told).rowcount)
    answer = await open_mode.ask("GET", "/status/devices/esp32-1/readings.csv")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["sensor"] for row in rows] == ["'" + formula] * 3
    assert (rows[0]["text"], rows[0]["unit"]) == ("'" + formula, "'" + formula)
    assert rows[1]["value"] == "-5.5"  # a number stays one


async def test_a_name_of_the_sender_is_no_header(open_house: Open) -> None:
    house = await open_house(open=True)
    await deliver(house, batch())
    answer = await house.ask("GET", "/status/devices/a%0d%0aX-Evil:%201/readings.csv")
    assert "X-Evil" not in answer.headers
