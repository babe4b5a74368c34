"""`POST /v1/imports`: a file of any size is on the disk, whole, before it is answered."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Unavailable
from gateway.handlers import REGISTRY
from gateway.web import imports
from tests.web.house import Answer, House, problem_of, start

HEAD = b"device,sensor,value,at\n"
Open = Callable[..., Awaitable[House]]


@pytest.fixture
async def open_house(tmp_path: Path) -> AsyncIterator[Open]:
    stops = []

    async def opened(**settings: Any) -> House:
        house, stop = await start(tmp_path, registry=REGISTRY, **settings)
        stops.append(stop)
        return house

    yield opened
    for stop in stops:
        await stop()


async def send(house: House, body: Any, target: str = "/v1/imports", **headers: str) -> Answer:
    token = {"Authorization": f"Bearer {house.keys.operator_token}"}
    return await house.ask("POST", target, body, **({"Content_Type": "text/csv"} | token | headers))


def left(folder: Path) -> list[str]:
    """Return the suffixes of what stands in the folder of imports."""
    return sorted(path.suffix for path in (folder / "imports").glob("*"))


async def test_a_file_is_taken_and_its_job_answered(open_house: Open, tmp_path: Path) -> None:
    house = await open_house()
    body = HEAD + b"d1,t,1,2\n"
    answer = await send(house, body, X_Request_ID="mine")
    job = answer.json
    assert answer.status == 202
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["Retry-After"] == "1"
    assert (job["kind"], job["state"], job["request_id"]) == ("import_readings", "pending", "mine")
    assert (tmp_path / "imports" / job["args"]["file"]).read_bytes() == body
    assert house.woken == [2]
    assert (await house.operator(f"/v1/jobs/{job['id']}")).json == job


async def test_the_same_file_under_the_same_key_is_the_same_job(
    open_house: Open, tmp_path: Path
) -> None:
    house = await open_house()
    first = await send(house, HEAD + b"d1,t,1,2\n", Idempotency_Key='"k"')
    again = await send(house, HEAD + b"d1,t,1,2\n", Idempotency_Key='"k"')
    assert (again.status, again.json) == (202, first.json)
    assert left(tmp_path) == [".csv"]
    assert (await send(house, HEAD + b"d1,t,1,2\n")).json["id"] != first.json["id"]


async def test_another_file_under_a_used_key_is_refused_and_not_kept(
    open_house: Open, tmp_path: Path
) -> None:
    house = await open_house()
    await send(house, HEAD + b"d1,t,1,2\n", Idempotency_Key='"k"')
    answer = await send(house, HEAD + b"d1,t,9,2\n", Idempotency_Key='"k"')
    assert (answer.status, problem_of(answer)["detail"].count("Idempotency-Key")) == (422, 1)
    assert left(tmp_path) == [".csv"]


async def test_what_was_sent_is_stored_and_its_report_can_be_read(open_house: Open) -> None:
    house = await open_house(workers=1)
    job = (await send(house, HEAD + b"d1,t,1,2\nd1,t,x,3\n")).json
    assert (await house.operator("/v1/imports/999")).status == 404
    done = await house.until(job["id"], "done")
    report = await house.operator(done["result"])
    assert report.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert report.text == (
        "1 new, 0 known before, 1 bad lines\nline 3: value 'x' is not a finite number\n"
    )
    [reading] = (await house.operator("/v1/readings")).json["readings"]
    assert (reading["device"], reading["value"], reading["at_ms"]) == ("d1", 1.0, 2)


async def test_a_file_far_larger_than_any_batch_is_taken(open_house: Open, tmp_path: Path) -> None:
    house = await open_house()
    piece = b"d1,t,1,2\n" * 10_000

    async def pieces() -> AsyncIterator[bytes]:
        yield HEAD
        for _ in range(100):
            yield piece

    answer = await send(house, pieces())
    assert answer.status == 202
    file = tmp_path / "imports" / answer.json["args"]["file"]
    assert file.stat().st_size == len(HEAD) + 100 * len(piece)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "the file is empty"),
        (b"a,b\n", "it lacks device, sensor, at"),
        (HEAD.decode().encode("utf-16"), "UTF-16"),
    ],
)
async def test_what_is_no_sheet_is_refused_and_not_kept(
    open_house: Open, tmp_path: Path, body: bytes, told: str
) -> None:
    answer = await send(await open_house(), body)
    assert answer.status == 422
    assert told in problem_of(answer)["detail"]
    assert left(tmp_path) == []


async def test_only_operators_send_files(open_house: Open, tmp_path: Path) -> None:
    house = await open_house()
    assert (await house.ask("POST", "/v1/imports", HEAD, Content_Type="text/csv")).status == 401
    await house.register("d1")
    assert (await house.signed("d1", HEAD, target="/v1/imports")).status == 403
    assert (await house.signed("d1", b"", "GET", "/v1/imports/1")).status == 403
    assert not (tmp_path / "imports").exists()


@pytest.mark.parametrize("form", ["text/plain", "application/x-www-form-urlencoded"])
async def test_no_other_sites_page_sends_a_file_in_open_mode(open_house: Open, form: str) -> None:
    house = await open_house(open=True)
    assert (await house.ask("POST", "/v1/imports", HEAD, Content_Type=form)).status == 415
    assert (await house.ask("POST", "/v1/imports", HEAD, Content_Type="text/csv")).status == 202
    assert (await send(house, HEAD, Content_Type=form)).status == 202  # with the token


@pytest.mark.parametrize(
    "headers", [{"Content_Type": "multipart/form-data; boundary=x"}, {"Content_Encoding": "gzip"}]
)
async def test_a_file_comes_as_it_is(open_house: Open, headers: dict[str, str]) -> None:
    assert (await send(await open_house(), HEAD, **headers)).status == 415


async def test_a_file_that_is_too_large_is_refused_by_what_it_says(
    open_house: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_BYTES", 1000)
    house = await open_house()
    assert (await send(house, HEAD * 100)).status == 413

    async def unsaid() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield HEAD

    assert (await send(house, unsaid())).status == 413
    assert left(tmp_path) == []


async def test_without_room_on_the_disk_nothing_is_taken(open_house: Open, tmp_path: Path) -> None:
    answer = await send(await open_house(min_free_bytes=2**50), HEAD)
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert left(tmp_path) == []


async def test_room_that_ends_meanwhile_leaves_nothing_behind(
    open_house: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([True, True])

    def require_room(_: object) -> None:
        if not next(looks, False):
            raise Unavailable("full")

    monkeypatch.setattr("gateway.web.disk.Disk.require_room", require_room)
    house = await open_house()

    async def pieces() -> AsyncIterator[bytes]:
        yield HEAD
        await asyncio.sleep(0.05)  # so that they arrive one by one
        yield HEAD

    assert (await send(house, pieces())).status == 503
    assert left(tmp_path) == []


async def test_a_file_that_breaks_off_leaves_nothing_and_no_job(
    open_house: Open, tmp_path: Path
) -> None:
    house = await open_house()
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    token = house.keys.operator_token
    writer.write(
        f"POST /v1/imports HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: text/csv\r\nContent-Length: 1000\r\n\r\n".encode()
        + HEAD
    )
    await writer.drain()
    await until(lambda: left(tmp_path) == [".part"])
    writer.close()
    await until(lambda: left(tmp_path) == [])
    assert (await house.operator("/v1/jobs")).json["jobs"] == []
    assert await reader.read() == b""


async def test_a_sender_that_falls_silent_is_given_up(open_house: Open, tmp_path: Path) -> None:
    house = await open_house(body_timeout_s=0.2)
    token = house.keys.operator_token
    head = (
        f"POST /v1/imports HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: text/csv\r\nContent-Length: 1000\r\n\r\n"
    )
    answer = await house.raw(head.encode() + HEAD, wait=False)
    assert answer.startswith(b"HTTP/1.1 408")
    assert left(tmp_path) == []


async def test_what_no_job_took_away_is_swept_when_it_is_old(
    open_house: Open, tmp_path: Path
) -> None:
    (tmp_path / "imports").mkdir()
    old, new = tmp_path / "imports" / "old.part", tmp_path / "imports" / "new.part"
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))
    await send(await open_house(), HEAD)
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize("name", ["..%2F..%2Ffieldpost.db", "1.txt", "-1", "%D9%A3", "9" * 30])
async def test_nothing_but_a_report_is_shown(open_house: Open, tmp_path: Path, name: str) -> None:
    (tmp_path / "imports").mkdir()
    assert (await (await open_house()).operator(f"/v1/imports/{name}")).status == 404


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)
