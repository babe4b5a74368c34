"""The report of a day, made by a real worker in a process of its own."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.aggregate import Aggregator
from gateway.handlers import registry
from gateway.handlers.report import files
from gateway.outcomes import Permanent
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.database import Database
from tests.services.works import Works

DATE = "2024-10-04"
FROM_MS = 20_000 * DAY_MS
KIND = "daily_report"
MINUTE_MS = 60_000


@pytest.fixture
async def works(tmp_path: Path) -> AsyncIterator[Works]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Works(database, tmp_path)
    await database.close()


async def made(works: Works, **args: Any) -> tuple[str, dict[tuple[str, str], dict[str, str]]]:
    """Have a report made; return the page, and the table by device and sensor."""
    row = await works.run(KIND, **{"date": DATE} | args)
    page = works.folder / "reports" / row["result"].removeprefix("/v1/reports/")
    table = csv.DictReader(io.StringIO(page.with_suffix(".csv").read_text()))
    return page.read_text(), {(line["device"], line["sensor"]): line for line in table}


def hourly(count: int = 24, **more: Any) -> list[dict[str, Any]]:
    return [{"value": float(n), "at_ms": FROM_MS + n * HOUR_MS, **more} for n in range(count)]


async def test_a_report_says_of_each_sensor_what_its_day_was(works: Works) -> None:
    await works.deliver("d", *hourly(unit="Cel"), {"value": 99.0, "at_ms": FROM_MS + DAY_MS})
    await works.deliver("d", {"sensor": "t", "text": "on", "at_ms": FROM_MS})
    page, table = await made(works)
    line = table["d", "s"]
    told = {name: line[name] for name in ("count", "min", "mean", "max", "first", "last", "unit")}
    assert told == {"count": "24", "min": "0.0", "mean": "11.5", "max": "23.0", "first": "0.0",
                    "last": "23.0", "unit": "Cel"}  # fmt: skip
    assert (line["gaps"], line["silent_ms"]) == ("24", str(DAY_MS))
    assert (table["d", "t"]["count"], table["d", "t"]["texts"]) == ("0", "1")
    assert page.count("<svg") == 1
    assert "Readings: 25. Devices: 1." in page


@pytest.mark.parametrize("counted", [0, 20, 1000])
async def test_a_report_is_the_same_whatever_the_aggregator_has_counted(
    works: Works, counted: int
) -> None:
    await works.deliver("d", *hourly(12))
    await works.deliver("e", *({**one, "at_ms": one["at_ms"] + 3 * DAY_MS} for one in hourly(5)))
    await works.deliver("d", *hourly(24)[:-13:-1])
    if counted:
        await Aggregator(works.database, rows=counted).run_once()
    _, table = await made(works)
    assert (table["d", "s"]["count"], table["d", "s"]["last"]) == ("24", "23.0")
    assert ("e", "s") in table


async def test_the_day_is_that_of_the_time_zone(works: Works) -> None:
    # Ahead by 5 h 45 min: the day begins and ends within hours of the aggregates.
    outer = [{"value": -1.0, "at_ms": FROM_MS - 345 * MINUTE_MS + at} for at in (-1, 0, DAY_MS - 1)]
    await works.deliver("d", outer[1], *hourly(), outer[0])
    await works.deliver("d", outer[2])
    await Aggregator(works.database).run_once()
    page, table = await made(works, time_zone="Asia/Kathmandu")
    assert (table["d", "s"]["count"], table["d", "s"]["first"]) == ("21", "-1.0")
    assert "00:00:00" in page
    assert "23:59:59" in page


async def test_values_are_calibrated_and_the_page_says_so(works: Works) -> None:
    await works.deliver("d", *hourly())
    works.settings["calibration"] = {"d": {"s": {"scale": 2.0, "offset": 1.0}}}
    page, table = await made(works)
    assert (table["d", "s"]["min"], table["d", "s"]["max"]) == ("1.0", "47.0")
    assert "s, calibrated" in page


async def test_a_device_that_was_silent_is_told_and_one_of_later_is_not(works: Works) -> None:
    day_before = {"value": 1.0, "at_ms": FROM_MS - DAY_MS}
    await works.deliver("silent", day_before, received_ms=FROM_MS - DAY_MS)
    await works.deliver("late", {**day_before, "at_ms": FROM_MS + 2 * DAY_MS},
                        received_ms=FROM_MS + 2 * DAY_MS)  # fmt: skip
    _, table = await made(works)
    assert [(key, line["silent_ms"]) for key, line in table.items()] == [
        (("silent", "s"), str(DAY_MS))
    ]


async def test_numbers_that_went_missing_that_day_are_told(works: Works) -> None:
    sent = [{**one, "id": f"d-7f3a17c2199-{1 + n * 3}"} for n, one in enumerate(hourly(3))]
    await works.deliver("d", *sent, received_ms=FROM_MS + HOUR_MS)
    page, _ = await made(works)
    assert "4 readings were found missing on this day" in page


async def test_what_devices_say_is_shown_and_never_run(works: Works) -> None:
    name = "<script>alert(1)</script>"
    await works.deliver("d", *hourly(3, sensor=name, unit="<b>"))
    await works.deliver("-d", *hourly(3, sensor="=1+1"))
    page, table = await made(works)
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"\bon\w+=|\bsrc=|@import|url\((?!#)", page)
    assert ("'-d", "'=1+1") in table


async def test_a_report_without_devices_says_so(works: Works) -> None:
    page, table = await made(works)
    assert "No device was known on this day" in page
    assert not table


async def test_a_later_report_of_the_same_day_takes_the_place_of_the_first(works: Works) -> None:
    await made(works)
    await works.deliver("d", *hourly(2))
    _, table = await made(works)
    assert table["d", "s"]["count"] == "2"
    assert sorted(path.name for path in (works.folder / "reports").iterdir()) == [
        f"daily-report-{DATE}-UTC.csv", f"daily-report-{DATE}-UTC.html",
    ]  # fmt: skip


async def test_the_mail_is_asked_for_once_however_often_the_job_is_tried(works: Works) -> None:
    works.settings["smtp"] = {
        "host": "127.0.0.1", "port": 9, "sender": "g@example.org", "tls": "none",
    }  # fmt: skip
    people = ["a@example.org", "b@example.org"]
    row = await works.run(KIND, date=DATE, mail_to=people)
    await works.database.write(
        lambda c: c.execute("UPDATE job SET state = 'failed' WHERE kind = ?", (KIND,)) and None
    )
    async with works.pool() as pool:
        await works.database.write(lambda c: pool.queue.retry(c, row["id"], 0))
        pool.wake()
        await works.until(row["id"], "done")
    mails = await works.rows("SELECT args, request_id FROM job WHERE kind = 'send_email'")
    assert len(mails) == 1
    args = registry(works.settings)["send_email"].decode(mails[0][0])
    assert args.to == people
    assert (row["result"] in args.text, mails[0][1]) == (True, "r1")


async def test_a_report_waits_uncounted_while_the_disk_is_nearly_full(works: Works) -> None:
    async with works.pool(min_free_bytes=2**60) as pool:
        row = await works.put_off(await works.ask(pool, KIND, date=DATE))
    assert row["error"] == "waits: the disk is nearly full"
    assert not (works.folder / "reports").exists()


async def test_a_database_in_memory_has_no_place_for_a_report(works: Works) -> None:
    works.settings["folder"] = None
    told = await works.refused(KIND, date=DATE)
    assert told == "a database in memory has no folder for reports: start with --db PATH"


async def test_mail_without_a_mail_server_is_told_before_any_work(works: Works) -> None:
    told = await works.refused(KIND, date=DATE, mail_to=["a@example.org"])
    assert "no mail server is set" in told
    assert not (works.folder / "reports").exists()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"date": "2026-02-30"}, "date '2026-02-30' does not exist: give a day"),
        ({"date": DATE, "time_zone": "Europe/Lisbn"}, "did you mean Europe/Lisbon?"),
        ({"date": DATE, "mail_to": ["nobody"]}, "mail_to"),
        ({}, "date"),
    ],
)
def test_bad_args_are_told_at_the_front(args: dict[str, Any], told: str) -> None:
    with pytest.raises(Permanent, match="args of daily_report") as refused:
        registry({})[KIND].decode(json.dumps(args))
    assert told in str(refused.value)


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / ".a.csv.unfinished").write_text("of a writing that was cut short, and longer")
    files.write_whole(tmp_path, "a.csv", b"first")
    files.write_whole(tmp_path, "a.csv", b"second")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.csv", b"second")]
