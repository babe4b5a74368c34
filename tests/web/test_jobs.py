"""`POST /v1/jobs` and `GET /v1/jobs`: asked for in milliseconds, and told as the rows have it."""

from typing import Any

import pytest

from tests.web.conftest import Open
from tests.web.house import NOW_MS, House, body, problem_of

JSON = {"Content_Type": "application/json"}


async def test_asking_gives_the_id_and_the_whole_job(house: House) -> None:
    asked = {"kind": "act", "args": {"do": "nothing"}, "priority": 3, "run_at_ms": NOW_MS + 5}
    answer = await house.ask_for(asked, X_Request_ID="r1")
    assert answer.status == 202
    assert answer.headers["Location"] == "/v1/jobs/1"
    assert answer.headers["Retry-After"] == "1"
    assert answer.json == {
        "id": 1, "kind": "act", "args": {"do": "nothing"}, "state": "pending", "progress": 0,
        "stage": None, "error": None, "attempts": 0, "crashes": 0, "cancel_requested": False,
        "priority": 3, "next_attempt_ms": NOW_MS + 5, "created_ms": NOW_MS, "started_ms": None,
        "finished_ms": None, "request_id": "r1", "result": None,
    }  # fmt: skip
    assert (await house.operator("/v1/jobs/1")).json == answer.json


async def test_a_job_without_args_or_instant_is_due_now(house: House) -> None:
    job = (await house.ask_for({"kind": "act"})).json
    assert (job["args"], job["priority"], job["next_attempt_ms"]) == ({}, 0, NOW_MS)


async def test_workers_do_what_was_asked_for_and_the_row_says_so(open_house: Open) -> None:
    house = await open_house(workers=1)
    job_id = (await house.job(X_Request_ID="r7")).json["id"]
    job = await house.until(job_id, "done")
    assert (job["progress"], job["attempts"], job["result"]) == (100, 1, "/results/a")
    assert (job["next_attempt_ms"], job["request_id"]) == (None, "r7")
    assert job["started_ms"] <= job["finished_ms"]


async def test_the_workers_are_told_of_each_new_job_and_each_retry(open_house: Open) -> None:
    house = await open_house(workers=1)
    assert (await house.job("permanent", Idempotency_Key="k")).json["id"] == 1
    told = house.woken[0]
    assert told >= 1
    await house.until(1, "failed")
    assert (await house.decide(1, "retry")).status == 200
    assert house.woken[0] > told


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        ({"kind": "akt"}, 422, "did you mean act?"),
        ({"kind": "zzzzzz"}, 422, "Kinds: act, heavy"),
        ({"kind": "act", "args": {"seconds": "many"}}, 422, "$.seconds"),
        ({"kind": "act", "args": []}, 422, "$.args"),
        ({"kind": "act", "args": None}, 422, "$.args"),
        ({"kind": 7}, 422, "$.kind"),
        ({"args": {}}, 422, "kind"),
        ({"kind": "act", "priorty": 1}, 422, "priorty"),
        ({"kind": "act", "priority": 1.5}, 422, "$.priority"),
        ({"kind": "act", "priority": True}, 422, "$.priority"),
        ({"kind": "act", "priority": 10**7}, 422, "$.priority"),
        ({"kind": "act", "run_at_ms": -1}, 422, "$.run_at_ms"),
        ({"kind": "act", "run_at_ms": 10**14}, 422, "$.run_at_ms"),
        ({"kind": "act", "run_at_ms": "2026-11-30"}, 422, "$.run_at_ms"),
        ([], 422, "object"),
        (b"", 400, "not JSON"),
        (b'{"kind": "act"', 400, "not JSON"),
        (b'{"kind": "act", "args": {"mark": "\\ud800"}}', 400, "not JSON"),
        (b'{"kind": "act", "args": {"mark": "\xff"}}', 400, "not JSON"),
        (b'{"kind": "act", "args": {"seconds": NaN}}', 400, "not JSON"),
        (b'{"kind": "act", "args": {"seconds": 1e999}}', 422, "out of range"),
        (b'{"kind": "act", "args": {"mark": ' + b"[" * 60_000, 400, "deep"),
    ],
)
async def test_what_can_not_be_done_is_refused_at_the_front(
    house: House, sent: Any, status: int, told: str
) -> None:
    answer = await house.ask_for(sent)
    problem = problem_of(answer)
    assert (answer.status, told in problem["detail"]) == (status, True), problem
    assert (await house.operator("/v1/jobs")).json["jobs"] == []


async def test_a_body_may_have_64_kib_and_not_a_byte_more(house: House) -> None:
    head, tail = b'{"kind":"act","args":{"mark":"', b'"}}'
    filling = b"x" * (64 * 1024 - len(head) - len(tail))
    assert (await house.ask_for(head + filling + tail)).status == 202
    assert problem_of(await house.ask_for(head + b"x" + filling + tail))["status"] == 413


async def test_the_same_key_asks_for_the_same_job(house: House) -> None:
    key = {"Idempotency_Key": '"report-7"'}
    first = await house.ask_for(b'{"kind":"act","args":{"do":"x","mark":"y"}}', **key)
    again = await house.ask_for(b'{"args":{"mark":"y","do":"x"},"kind":"act","priority":0}', **key)
    assert (again.status, again.headers["Location"]) == (202, first.headers["Location"])
    as_token = await house.ask_for(
        {"kind": "act", "args": {"do": "x", "mark": "y"}}, Idempotency_Key="report-7"
    )
    assert as_token.json == again.json == first.json
    assert len((await house.operator("/v1/jobs")).json["jobs"]) == 1


@pytest.mark.parametrize(
    "other", [{"kind": "heavy"}, {"args": {"do": "z"}}, {"priority": 1}, {"run_at_ms": NOW_MS}]
)
async def test_the_same_key_for_something_else_is_refused(house: House, other: Any) -> None:
    key = {"Idempotency_Key": "k"}
    await house.ask_for({"kind": "act"}, **key)
    answer = await house.ask_for({"kind": "act"} | other, **key)
    assert (answer.status, "Idempotency-Key" in problem_of(answer)["detail"]) == (422, True)


async def test_a_discarded_job_frees_its_key(house: House) -> None:
    first = await house.job(Idempotency_Key="k")
    assert (await house.decide(first.json["id"], "cancel")).json["state"] == "discarded"
    again = await house.job("other", Idempotency_Key="k")
    assert (again.status, again.json["id"] != first.json["id"]) == (202, True)


async def test_a_key_is_its_callers_own(open_house: Open) -> None:
    house = await open_house(open=True)
    operators = await house.job(Idempotency_Key="k")
    anybodys = await house.ask("POST", "/v1/jobs", b'{"kind":"heavy"}', Idempotency_Key="k", **JSON)
    assert (anybodys.status, anybodys.json["id"] != operators.json["id"]) == (202, True)


@pytest.mark.parametrize("key", ["", '""', '"a', "a b", "é", '"a", "b"', "x" * 256])
async def test_a_malformed_key_is_refused(house: House, key: str) -> None:
    assert problem_of(await house.job(Idempotency_Key=key))["status"] == 400


async def test_a_device_may_not_ask_nor_look(house: House) -> None:
    await house.register("esp32-1")
    sent = body({"kind": "act"})
    assert problem_of(await house.signed("esp32-1", sent, target="/v1/jobs"))["status"] == 403
    looked = await house.signed("esp32-1", b"", method="GET", target="/v1/jobs/1")
    assert problem_of(looked)["status"] == 403


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/v1/jobs"), ("GET", "/v1/jobs"), ("GET", "/v1/jobs/1"),
        ("POST", "/v1/jobs/1/retry"), ("POST", "/v1/jobs/1/discard"),
        ("POST", "/v1/jobs/1/cancel"), ("GET", "/v1/openapi.json"),
    ],
)  # fmt: skip
async def test_a_stranger_gets_nothing(house: House, method: str, target: str) -> None:
    await house.job()
    assert problem_of(await house.ask(method, target, **JSON))["status"] == 401


async def test_open_mode_takes_no_job_that_a_foreign_page_could_send(open_mode: House) -> None:
    sent = body({"kind": "act"})
    plain = await open_mode.ask("POST", "/v1/jobs", sent, Content_Type="text/plain")
    assert problem_of(plain)["status"] == 415
    job = (await open_mode.ask("POST", "/v1/jobs", sent, **JSON)).json
    there = f"/v1/jobs/{job['id']}/cancel"
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{open_mode.port + 1}"):
        assert problem_of(await open_mode.ask("POST", there, Origin=origin))["status"] == 403
    own = f"http://127.0.0.1:{open_mode.port}"
    assert (await open_mode.ask("POST", there, Origin=own)).json["state"] == "discarded"


async def test_a_disk_without_room_takes_no_jobs(open_house: Open) -> None:
    house = await open_house(min_free_bytes=2**50)
    answer = await house.job()
    assert (problem_of(answer)["status"], "Retry-After" in answer.headers) == (503, True)


async def test_jobs_come_the_newest_first_page_by_page(house: House) -> None:
    for _ in range(5):
        await house.job()
    for cancelled in (2, 4, 5):
        await house.decide(cancelled, "cancel")
    first = (await house.operator("/v1/jobs?limit=2")).json
    rest = (await house.operator(f"/v1/jobs?limit=9&after={first['next']}")).json
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == [5, 4, 3, 2, 1]
    assert rest["next"] is None
    there = "/v1/jobs?state=discarded&limit=2"
    first = (await house.operator(there)).json
    rest = (await house.operator(f"{there}&after={first['next']}")).json
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == [5, 4, 2]
    assert (await house.operator("/v1/jobs?state=failed")).json == {"jobs": [], "next": None}


@pytest.mark.parametrize("query", ["state=lost", "after=0", "after=x", "limit=1001", "more=1"])
async def test_a_page_is_asked_for_rightly_or_refused(house: House, query: str) -> None:
    assert problem_of(await house.operator(f"/v1/jobs?{query}"))["status"] == 400


@pytest.mark.parametrize("id_", ["1", "0", "-1", "x", "9" * 19, "9" * 400, "%C2%B2"])
async def test_a_job_that_is_not_there_is_not_found(house: House, id_: str) -> None:
    assert problem_of(await house.operator(f"/v1/jobs/{id_}"))["status"] == 404
