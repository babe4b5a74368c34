"""`/v1/alarms`: listed, acknowledged, closed by who may."""

from pathlib import Path
from typing import Any

import pytest

from gateway.store import alarms
from tests.web.conftest import Open
from tests.web.house import NOW_MS, House, body, problem_of
from tests.web.watch import watcher_of

JSON = {"Content_Type": "application/json"}


async def open_alarm(house: House, kind: str, subject: str = "esp32-1") -> None:
    await house.db.write(lambda c: alarms.open_alarm(c, kind, subject, "it is so", NOW_MS))


async def listed(house: House, query: str = "") -> Any:
    return (await house.ask("GET", f"/v1/alarms{query}")).json


async def test_an_open_alarm_says_what_it_means_and_what_to_do(open_mode: House) -> None:
    await open_alarm(open_mode, "conflict")
    found = await listed(open_mode)
    assert found["next"] is None
    [alarm] = found["alarms"]
    assert alarm.pop("title") == "An id was used for two readings"
    assert alarm.pop("means")
    assert alarm.pop("do")
    assert alarm == {
        "id": 1, "kind": "conflict", "subject": "esp32-1", "detail": "it is so",
        "opened_at_ms": NOW_MS, "last_at_ms": NOW_MS, "times": 1, "may_be_closed": True,
        "acknowledged_at_ms": None, "acknowledged_by": None, "note": None,
        "closed_at_ms": None, "closed_by": None,
    }  # fmt: skip


async def test_acknowledging_says_who_when_and_what_and_leaves_it_open(open_mode: House) -> None:
    await open_alarm(open_mode, "device_silent")
    open_mode.now_ms[0] += 5000
    note = body({"note": "the basement is flooded"})
    answer = await open_mode.ask("POST", "/v1/alarms/1/acknowledge", note, **JSON)
    assert answer.status == 200
    [alarm] = (await listed(open_mode))["alarms"]
    assert alarm == answer.json
    assert alarm["note"] == "the basement is flooded"
    assert alarm["acknowledged_at_ms"] == NOW_MS + 5000
    assert alarm["acknowledged_by"] == "somebody in open mode"
    assert alarm["closed_at_ms"] is None


async def test_an_event_is_closed_by_a_person_once(open_mode: House) -> None:
    await open_alarm(open_mode, "database_damaged")
    answer = await open_mode.ask("POST", "/v1/alarms/1/close")
    assert (answer.status, answer.json["closed_by"]) == (200, "somebody in open mode")
    assert (await listed(open_mode))["alarms"] == []
    assert [one["id"] for one in (await listed(open_mode, "?state=closed"))["alarms"]] == [1]
    for verb in ("close", "acknowledge"):
        answer = await open_mode.ask("POST", f"/v1/alarms/1/{verb}", b"{}", **JSON)
        assert answer.status == 409
        assert "closed" in problem_of(answer)["detail"]


async def test_what_is_true_is_not_closed_by_a_person(open_mode: House) -> None:
    await open_alarm(open_mode, "device_silent")
    answer = await open_mode.ask("POST", "/v1/alarms/1/close")
    assert answer.status == 409
    assert "by itself" in problem_of(answer)["detail"]
    assert len((await listed(open_mode))["alarms"]) == 1


async def test_alarms_come_newest_first_page_by_page(open_mode: House) -> None:
    for number in range(5):
        await open_alarm(open_mode, "conflict", f"esp32-{number}")
    await open_mode.db.write(lambda c: alarms.close_alarm(c, 4, NOW_MS))
    first = await listed(open_mode, "?state=all&limit=3")
    assert [one["id"] for one in first["alarms"]] == [5, 4, 3]
    rest = await listed(open_mode, f"?state=all&limit=3&after={first['next']}")
    assert ([one["id"] for one in rest["alarms"]], rest["next"]) == ([2, 1], None)
    assert [one["id"] for one in (await listed(open_mode))["alarms"]] == [5, 3, 2, 1]


@pytest.mark.parametrize(
    ("method", "target", "sent", "status"),
    [
        ("POST", "/v1/alarms/9/acknowledge", b"{}", 404),
        ("POST", "/v1/alarms/9/close", b"{}", 404),
        ("POST", "/v1/alarms/x/close", b"{}", 404),
        ("POST", "/v1/alarms/1/acknowledge", b'{"note": 1}', 422),
        ("POST", "/v1/alarms/1/acknowledge", b'{"note": "a\\nb"}', 422),
        ("POST", "/v1/alarms/1/acknowledge", body({"note": "x" * 1001}), 422),
        ("POST", "/v1/alarms/1/acknowledge", b'{"not": ""}', 422),
        ("POST", "/v1/alarms/1/acknowledge", b'{"note', 400),
        ("POST", "/v1/alarms/1/acknowledge", b"", 400),
        ("GET", "/v1/alarms?state=on", None, 400),
        ("GET", "/v1/alarms?limit=0", None, 400),
    ],
)
async def test_what_can_not_be_is_a_problem(
    open_mode: House, method: str, target: str, sent: bytes | None, status: int
) -> None:
    await open_alarm(open_mode, "conflict")
    answer = await open_mode.ask(method, target, sent, **JSON)
    assert answer.status == status
    problem_of(answer)


async def test_only_an_operator_sees_and_decides(house: House) -> None:
    await open_alarm(house, "conflict")
    await house.register("esp32-1")
    for method, target in (
        ("GET", "/v1/alarms"),
        ("POST", "/v1/alarms/1/acknowledge"),
        ("POST", "/v1/alarms/1/close"),
    ):
        assert (await house.ask(method, target)).status == 401
        assert (await house.signed("esp32-1", b"", method, target)).status == 403
    token = f"Bearer {house.keys.operator_token}"
    assert (await house.ask("POST", "/v1/alarms/1/close", Authorization=token)).status == 200


async def test_a_page_of_another_site_closes_and_acknowledges_nothing(open_mode: House) -> None:
    await open_alarm(open_mode, "conflict")
    answer = await open_mode.ask("POST", "/v1/alarms/1/close", Origin="http://elsewhere")
    assert answer.status == 403
    answer = await open_mode.ask("POST", "/v1/alarms/1/acknowledge", b"{}")
    assert answer.status == 415


async def test_a_job_that_fails_is_said_in_the_headline_until_it_is_tried_again(
    open_house: Open, tmp_path: Path
) -> None:
    house = await open_house(workers=1, open=True)
    job_id = (await house.job("permanent")).json["id"]
    await house.until(job_id, "failed")
    found = (await house.ask("GET", "/v1/status")).json
    assert (found["ok"], found["headline"]) == (False, "1 job failed")
    assert [(one["kind"], one["subject"]) for one in found["alarms"]] == [("job_failed", "act")]
    await house.decide(job_id, "discard")
    assert (await house.ask("GET", "/v1/status")).json["ok"] is True


async def test_a_stalled_queue_is_said_in_the_headline(open_mode: House) -> None:
    watcher = watcher_of(open_mode, stalled_after_s=10)
    await open_mode.job()
    for _ in range(7):
        await watcher.run_once()
        open_mode.now_ms[0] += 2000
    found = (await open_mode.ask("GET", "/v1/status")).json
    assert (found["ok"], found["headline"]) == (False, "the queue is stalled")
