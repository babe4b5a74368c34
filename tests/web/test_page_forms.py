"""What a person does on the page: it is done, said truly, and asked by nobody else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.store import alarms
from gateway.store.jobs import LEASE_MS
from tests.web.conftest import Open
from tests.web.house import NOW_MS, Answer, House
from tests.web.test_page import HTML, page, said

FORM = "application/x-www-form-urlencoded"
CSV = b"device,sensor,value,at\na,s,1,2026-11-30T00:00:00Z\n"
REAL = "gateway.handlers:registry"


async def token(house: House, target: str = "/status/ask") -> str:
    [*_, found] = re.findall(r'name="csrf" value="([^"]+)"', await page(house, target))
    return found


async def send(house: House, target: str, **fields: str) -> Answer:
    """Send a form as the page's own would."""
    fields = {"csrf": await token(house)} | fields
    sent = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    return await house.ask("POST", target, sent, Content_Type=FORM, Accept=HTML)


async def ask(house: House, do: str = "nothing") -> str:
    """Ask for a job by the form; return the address of its page."""
    args = json.dumps({"do": do, "mark": "a"}).replace('"', "%22")
    answer = await send(house, "/status/jobs", kind="act", args=args)
    assert answer.status == 303, answer.text
    return answer.headers["Location"]


def headline(markup: str) -> str:
    [found] = re.findall(r"<p data-announce><strong>(.*?)</strong>", markup)
    return found


async def test_what_was_asked_for_is_received_and_not_done(open_mode: House) -> None:
    there = await ask(open_mode)
    assert there == "/status/jobs/1"
    open_mode.now_ms[0] += 3_600_000
    assert headline(await page(open_mode, there)) == "received, waiting"
    shown = said(await page(open_mode, "/status/parts/jobs"))
    assert "received, waiting" in shown
    assert "Done, 1 h 0" in shown
    assert re.search(r"\bdone\b", shown) is None


async def test_a_failed_job_is_tried_again_and_done(open_house: Open) -> None:
    house = await open_house(open=True, workers=1)
    there = await ask(house, "permanent")
    await house.until(1, "failed")
    shown = await page(house, there)
    assert headline(shown) == "failed"
    assert "Last error: never" in said(shown)
    assert re.findall(r"<button[^>]*>([^<]+)<", shown) == ["Try again", "Discard"]
    answer = await send(house, f"{there}/retry", back="/status")
    assert (answer.status, answer.headers["Location"]) == (303, "/status")
    await house.until(1, "failed")
    assert (await send(house, f"{there}/discard")).headers["Location"] == there
    shown = await page(house, there)
    assert headline(shown) == "discarded"
    life = re.findall(r'data-label="Move"><div>(\w+)', shown)
    assert life == ["enqueue", "claim", "fail", "retry", "claim", "fail", "discard"]
    shown = said(await page(house, "/status"))
    assert "Failed, 1 h 100 %" in shown
    assert "Run again, 1 h 1" in shown


async def test_a_waiting_job_is_cancelled(open_mode: House) -> None:
    there = await ask(open_mode)
    assert "Cancel" in said(await page(open_mode))
    assert (await send(open_mode, f"{there}/cancel")).status == 303
    assert headline(await page(open_mode, there)) == "discarded"


async def test_what_can_not_be_done_is_said_on_a_page(open_mode: House) -> None:
    there = await ask(open_mode)
    answer = await send(open_mode, f"{there}/retry")
    assert answer.status == 409
    assert "job 1 is pending: retry is no move from there" in said(answer.text)
    assert (await send(open_mode, "/status/jobs/9/retry")).status == 404
    assert (await send(open_mode, "/status/jobs", kind="nothing")).status == 422
    assert (await send(open_mode, "/status/jobs", kind="act", args="[]")).status == 422
    assert (await send(open_mode, "/status/alarms/9/acknowledge")).status == 404


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "/v1/jobs", "/status/%0d"]
)
async def test_a_form_leads_back_to_the_page_only(open_mode: House, back: str) -> None:
    there = await ask(open_mode)
    answer = await send(open_mode, f"{there}/cancel", back=back)
    assert answer.headers["Location"] == there


async def test_a_form_without_its_token_does_nothing(open_mode: House) -> None:
    there = await ask(open_mode)
    for target in (
        "/status/jobs",
        f"{there}/cancel",
        "/status/imports",
        "/status/alarms/1/acknowledge",
    ):
        assert (await send(open_mode, target, csrf="x")).status == 403
    assert headline(await page(open_mode, there)) == "received, waiting"


async def test_a_worker_that_gives_no_sign_is_told_of_and_then_its_rescue(
    open_mode: House,
) -> None:
    there = await ask(open_mode)
    claim = (
        "UPDATE job SET state = 'running', token = 't', worker = 'w', started_at_ms = ?,"
        " lease_until_ms = ?"
    )
    now_ms = open_mode.now_ms[0]
    await open_mode.db.write(lambda c: c.execute(claim, (now_ms, now_ms + LEASE_MS)).rowcount)
    assert headline(await page(open_mode, there)) == "running"
    open_mode.now_ms[0] += 8000
    assert headline(await page(open_mode, there)) == "no sign of its worker for 8 s"
    open_mode.now_ms[0] += 8000
    shown = said(await page(open_mode))
    assert "its worker is gone, it will be rescued" in shown
    rescued = (
        "UPDATE job SET state = 'pending', crashes = 1, token = NULL, worker = NULL,"
        " lease_until_ms = NULL"
    )
    await open_mode.db.write(lambda c: c.execute(rescued).rowcount)
    assert headline(await page(open_mode, there)) == "waits to be tried again"
    assert "1 crash" in said(await page(open_mode))


async def test_an_alarm_is_acknowledged_with_a_note(open_mode: House) -> None:
    for kind in ("device_silent", "database_damaged"):
        await open_mode.db.write(
            lambda c, kind=kind: alarms.open_alarm(c, kind, "x", "detail", NOW_MS)
        )
    assert "Acknowledge" in said(await page(open_mode, "/status/alarms/1"))
    answer = await send(open_mode, "/status/alarms/1/acknowledge", note="battery+is+flat")
    assert (answer.status, answer.headers["Location"]) == (303, "/status")
    assert "battery is flat" in said(await page(open_mode))
    assert (await send(open_mode, "/status/alarms/1/close")).status == 409
    assert (await send(open_mode, "/status/alarms/2/close")).status == 303
    assert "database" not in said(await page(open_mode, "/status/parts/alarms"))
    assert "Over since" in said(await page(open_mode, "/status/alarms/2"))


def multipart(*parts: tuple[str, bytes]) -> bytes:
    sent = b"".join(
        b"--x\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + content + b"\r\n"
        for head, content in parts
    )
    return sent + b"--x--\r\n"


async def upload(house: House, sent: bytes) -> Answer:
    target = f"/status/imports?csrf={await token(house)}"
    return await house.ask(
        "POST", target, sent, Content_Type="multipart/form-data; boundary=x", Accept=HTML
    )


async def test_a_file_is_taken_as_a_plain_form_sends_it(open_house: Open, tmp_path: Path) -> None:
    house = await open_house(open=True, registry=REAL)
    name = "<b>x&amp;.csv"
    sent = multipart(('name="other"', b"1"), (f'name="file"; filename="{name}"', CSV))
    answer = await upload(house, sent)
    assert answer.status == 303, answer.text
    job: Any = (await house.operator("/v1/jobs/1")).json
    assert job["args"]["name"] == "<b>x&amp;.csv"
    [file] = (tmp_path / "data/imports").glob("*.csv")
    assert file.read_bytes() == CSV
    shown = await page(house, answer.headers["Location"])
    assert "<b>" not in shown
    assert "&lt;b&gt;x&amp;amp;.csv" in shown


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (multipart(('name="file"; filename="x.csv"', b"")), 422),
        (multipart(('name="file"; filename="x.csv"', b"a,b\n1,2\n")), 422),
        (multipart(('name="other"', b"x")), 422),
        (b"--y\r\n", 400),
        (b"", 400),
    ],
)
async def test_a_file_that_is_no_sheet_is_refused_on_a_page(
    open_house: Open, tmp_path: Path, sent: bytes, status: int
) -> None:
    house = await open_house(open=True, registry=REAL)
    answer = await upload(house, sent)
    assert answer.status == status, answer.text
    assert "Not done" in said(answer.text)
    assert not list((tmp_path / "data/imports").glob("*"))
    assert (await house.operator("/v1/jobs")).json["jobs"] == []


async def test_a_report_and_charts_are_asked_for_by_their_forms(open_house: Open) -> None:
    house = await open_house(open=True, registry=REAL)
    report = {"kind": "daily_report", "date": "2026-11-30", "time_zone": "Europe/Lisbon"}
    assert (await send(house, "/status/jobs", **report)).status == 303
    charts = {"kind": "recalculate_chart", "from": "2026-11-29", "to": "2026-11-30", "device": ""}
    assert (await send(house, "/status/jobs", **charts)).status == 303
    asked = [one["args"] for one in (await house.operator("/v1/jobs")).json["jobs"]]
    assert asked == [
        {"from": "2026-11-29", "to": "2026-11-30"},
        {"date": "2026-11-30", "time_zone": "Europe/Lisbon"},
    ]
    wrong = await send(house, "/status/jobs", kind="daily_report", date="2026-02-30")
    assert wrong.status == 422
    assert "date" in said(wrong.text)
