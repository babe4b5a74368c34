"""`GET /v1/readings`: filters, pages, CSV."""

import csv
import io
from typing import Any

import pytest

from gateway.store import pages
from tests.web.house import BOOT, NOW_MS, House, batch, body, problem_of

JSON = {"Content_Type": "application/json"}


async def deliver(house: House, sent: Any) -> None:
    answer = await house.ask("POST", "/v1/readings", body(sent), **JSON)
    assert answer.json["rejected"] == []


async def ids(house: House, query: str) -> list[str]:
    found = (await house.ask("GET", f"/v1/readings?{query}")).json["readings"]
    return [reading["reading_id"].rpartition("-")[2] for reading in found]


def reading(n: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"esp32-1-{BOOT}-{n}", "sensor": "soil", "at_ms": NOW_MS} | fields


async def test_a_reading_is_shown_whole_and_as_it_was_sent(open_mode: House) -> None:
    await deliver(open_mode, batch())
    assert (await open_mode.ask("GET", "/v1/readings")).json == {
        "readings": [
            {
                "arrival": 1,
                "reading_id": f"esp32-1-{BOOT}-1",
                "device": "esp32-1",
                "sensor": "dht22.temperature",
                "value": 21.0,
                "text": None,
                "unit": "Cel",
                "error": None,
                "boot": BOOT,
                "n": 1,
                "at_ms": NOW_MS - 1000,
                "clock": "synced",
                "received_at_ms": NOW_MS,
            }
        ],
        "next": None,
    }


async def test_readings_come_in_order_of_arrival_page_by_page(open_mode: House) -> None:
    await deliver(open_mode, batch(count=3, first=5))
    await deliver(open_mode, batch(count=4, first=1))
    seen, after = [], 0
    while after is not None:
        page = (await open_mode.ask("GET", f"/v1/readings?limit=3&after={after}")).json
        assert len(page["readings"]) <= 3
        seen += [one["n"] for one in page["readings"]]
        after = page["next"]
    assert seen == [5, 6, 7, 1, 2, 3, 4]


async def test_what_arrives_later_is_found_behind_the_last_arrival(open_mode: House) -> None:
    await deliver(open_mode, batch(count=2))
    last = (await open_mode.ask("GET", "/v1/readings")).json["readings"][-1]["arrival"]
    assert await ids(open_mode, f"after={last}") == []
    await deliver(open_mode, batch(count=1, first=3))
    assert await ids(open_mode, f"after={last}") == ["3"]


async def test_filters_narrow_what_is_shown(open_mode: House) -> None:
    await deliver(
        open_mode,
        batch(readings=[reading(n, value=n, at_ms=NOW_MS + n) for n in range(1, 6)]),
    )
    await deliver(open_mode, batch("esp32-2", first=9))
    assert await ids(open_mode, "device=esp32-2") == ["9"]
    assert await ids(open_mode, "device=esp32-3") == []
    assert await ids(open_mode, "sensor=dht22.temperature") == ["9"]
    assert await ids(open_mode, "device=esp32-1&sensor=soil&limit=2") == ["1", "2"]
    assert await ids(open_mode, f"from={NOW_MS + 2}&to={NOW_MS + 4}") == ["2", "3"]
    assert await ids(open_mode, f"device=esp32-1&from={NOW_MS + 5}") == ["5"]


async def test_a_sensor_may_be_named_in_any_script(open_mode: House) -> None:
    await deliver(open_mode, batch(readings=[reading(1, value=1, sensor="céu ☁")]))
    assert await ids(open_mode, "sensor=c%C3%A9u%20%E2%98%81") == ["1"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("limit=%D9%A1", "limit"),
        ("limit=1&limit=2", "limit"),
        ("after=-1", "after"),
        ("after=99999999999999999999", "after"),
        ("from=1e3", "from"),
        ("to=9223372036854775808", "to"),
        ("device=a%20b", "device"),
        ("device=", "device"),
        ("device=" + "x" * 65, "device"),
        ("sensor=%00", "sensor"),
        ("sensor=" + "x" * 65, "sensor"),
        ("form=1", "form"),
    ],
)
async def test_a_bad_parameter_is_refused_by_name(open_mode: House, query: str, named: str) -> None:
    for accept in ("application/json", "text/csv"):
        answer = await open_mode.ask("GET", f"/v1/readings?{query}", Accept=accept)
        if not (accept == "text/csv" and query == "limit=1001"):  # CSV has no such bound
            assert named in problem_of(answer)["detail"]
            assert answer.status == 400


async def test_a_rare_match_among_many_is_found_in_bounded_steps(open_mode: House) -> None:
    """The page may be short, but following `next` finds all; no step reads without bound."""
    await deliver(open_mode, batch("esp32-2"))
    await deliver(open_mode, batch(readings=[reading(1, value=1)]))
    many = pages._SCAN * pages._MOST_SCANS + 10
    await open_mode.db.write(lambda c: c.execute(FILL, (many,)).rowcount)
    await deliver(open_mode, batch(readings=[reading(2, value=2)]))
    first = (await open_mode.ask("GET", "/v1/readings?sensor=soil")).json
    assert [one["n"] for one in first["readings"]] == [1]
    second = (await open_mode.ask("GET", f"/v1/readings?sensor=soil&after={first['next']}")).json
    assert [one["n"] for one in second["readings"]] == [2]
    assert second["next"] is None
    whole = await open_mode.ask("GET", "/v1/readings?sensor=soil", Accept="text/csv")
    assert whole.text.count("\r\n") == 3


FILL = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)
INSERT INTO reading (reading_id, device_id, sensor_id, value, at_ms, clock, received_at_ms)
SELECT 'filler-' || n, s.device_id, s.id, n, 0, 'none', 0
FROM number CROSS JOIN sensor AS s WHERE s.name = 'dht22.temperature'
"""


async def csv_rows(house: House, query: str = "") -> list[dict[str, str]]:
    answer = await house.ask("GET", f"/v1/readings?{query}", Accept="text/csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Fieldpost-Protocol"] == "1"
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


async def test_csv_has_every_reading_with_the_columns_of_the_public_view(open_mode: House) -> None:
    await deliver(open_mode, batch(count=64))
    await deliver(open_mode, batch(count=64, first=65))
    rows = await csv_rows(open_mode)
    assert [row["n"] for row in rows] == [str(n) for n in range(1, 129)]
    view = await open_mode.db.all("SELECT * FROM readings LIMIT 1")
    assert list(rows[0]) == view[0].keys()
    assert len(await csv_rows(open_mode, "limit=100")) == 100
    assert len(await csv_rows(open_mode, "after=100&device=esp32-1")) == 28


async def test_csv_cells_run_nothing_in_a_spreadsheet(open_mode: House) -> None:
    texts = ['=cmd|"/C calc"!A0', "+1", "-1", "@SUM(A1)", 'say "a,b"', "plain"]
    sent = [reading(n, text=text) for n, text in enumerate(texts, 1)]
    await deliver(open_mode, batch(readings=[*sent, reading(9, value=-5, unit="=x")]))
    rows = await csv_rows(open_mode)
    assert [row["text"] for row in rows[:4]] == ["'" + text for text in texts[:4]]
    assert [row["text"] for row in rows[4:6]] == texts[4:]
    assert (rows[6]["value"], rows[6]["unit"]) == ("-5.0", "'=x")


async def test_csv_ends_although_readings_keep_arriving(open_mode: House) -> None:
    await deliver(open_mode, batch(count=2))
    pieces = pages.every_reading(open_mode.db, pages.Filter(), 0, None)
    seen = []
    async for rows in pieces:
        seen += [row["n"] for row in rows]
        assert len(seen) < 9
        await deliver(open_mode, batch(count=1, first=len(seen) + 1))
    assert seen == [1, 2]


async def test_no_query_for_readings_scans_the_table_or_sorts(open_mode: House) -> None:
    named = {
        "device": "", "sensor": None, "after": 0, "end": 9, "scan": 9, "limit": 9,
        "from_ms": 0, "to_ms": 9,
    }  # fmt: skip
    for block in (
        "scan_end", "scan_end_of_device", "readings_between", "readings_of_device_between",
        "newest_readings",
    ):  # fmt: skip
        plan = await open_mode.db.all("EXPLAIN QUERY PLAN " + getattr(pages._sql, block), named)
        steps = [row["detail"] for row in plan]
        assert not any("TEMP B-TREE" in step for step in steps), steps
        bounded = "SCAN r" if block == "newest_readings" else "SCAN (subquery"
        scans = [step for step in steps if step.startswith("SCAN") and bounded not in step]
        assert scans == [], (block, steps)
