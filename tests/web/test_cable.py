"""Boards on a cable get what boards over HTTP get: real gateway, real pseudo-terminal."""

import asyncio
import fcntl
import json
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway import frames
from gateway.errors import Unavailable
from gateway.serial_port import Allowance, Ports, attended
from gateway.web import FRONT
from tests.web.cable import Cable, framed
from tests.web.house import House, batch, body, expected, sign

LOCK_S = 2.0
Attend = Callable[..., Awaitable[Cable]]


@asynccontextmanager
async def on_cable(house: House, folder: Path, **more: Any) -> AsyncIterator[Cable]:
    cable = Cable(folder / "ttyBOARD")
    more = {"wait_ms": lambda failures: 20} | more
    try:
        async with attended(Ports([str(cable.path)], house.app[FRONT], folder / "ports", **more)):
            yield cable
    finally:
        cable.unplug()


@pytest.fixture
async def attend(tmp_path: Path) -> AsyncIterator[Attend]:
    """Give a gateway a cable."""
    async with AsyncExitStack() as cables:

        async def attending(house: House, **more: Any) -> Cable:
            cable = await cables.enter_async_context(on_cable(house, tmp_path, **more))
            await cable.opened()
            return cable

        yield attending


def signed(key: bytes, device: str, sent: bytes) -> dict[str, str]:
    nonce = secrets.token_hex(16)
    return {
        "auth": sign(key, device, nonce, "POST", "/v1/readings", sent),
        "body": sent.decode(),
        "id": nonce,
    }


async def stored(house: House) -> list[str]:
    rows = await house.db.all("SELECT reading_id FROM readings ORDER BY reading_id")
    return [row["reading_id"] for row in rows]


async def test_a_signed_delivery_is_stored_and_the_answer_to_it_is_signed(
    registered: House, attend: Attend
) -> None:
    cable = await attend(registered)
    key = registered.keys.device_key("esp32-1", 1)
    told = signed(key, "esp32-1", body(batch(count=3)))
    answer = await cable.ask(told)
    assert answer.status == 200
    assert answer.json["stored"] == 3
    assert answer.headers["id"] == told["id"]
    assert answer.headers["Fieldpost-Signature"] == expected(key, "esp32-1", told["id"], answer)
    assert len(await stored(registered)) == 3


async def test_what_came_by_cable_is_a_duplicate_over_http_and_back(
    registered: House, attend: Attend
) -> None:
    cable = await attend(registered)
    key = registered.keys.device_key("esp32-1", 1)
    by_cable, by_air = body(batch(count=3)), body(batch(count=3, first=4))
    await cable.ask(signed(key, "esp32-1", by_cable))
    await registered.signed("esp32-1", by_air)
    assert (await registered.signed("esp32-1", by_cable)).json["duplicates"] == 3
    assert (await cable.ask(signed(key, "esp32-1", by_air))).json["duplicates"] == 3
    assert len(await stored(registered)) == 6


REFUSED = {
    "not JSON": b"{",
    "nested too deep": b"[" * 5000,
    "no object": b"[]",
    "no device": body({"readings": []}),
    "readings that are no list": body({"device": "esp32-1", "readings": 1}),
    "65 readings": body(batch(count=65)),
    "more than 16 KiB": body(batch(filling="x" * 17_000)),
    "another device": body(batch(device="esp32-2")),
}


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
async def test_what_http_refuses_a_cable_refuses_alike(
    sent: bytes, registered: House, attend: Attend
) -> None:
    cable = await attend(registered)
    key = registered.keys.device_key("esp32-1", 1)
    told = signed(key, "esp32-1", sent)
    answer = await cable.ask(told)
    over_http = await registered.signed("esp32-1", sent)
    assert answer.status == over_http.status >= 400
    assert answer.headers["Fieldpost-Signature"] == expected(key, "esp32-1", told["id"], answer)
    assert answer.json | {"request_id": ""} == over_http.json | {"request_id": ""}
    assert await stored(registered) == []


@pytest.mark.parametrize(
    "auth",
    [None, "", "Fieldpost", 'Fieldpost device="esp32-1", nonce="", signature=""',
     "Bearer " + "0" * 64, sign(bytes(32), "esp32-1", "0" * 32, "POST", "/v1/readings", b"{}"),
     sign(bytes(32), "nobody", "0" * 32, "POST", "/v1/readings", b"{}")],
)  # fmt: skip
async def test_who_can_not_sign_is_let_in_by_no_cable(
    auth: str | None, registered: House, attend: Attend
) -> None:
    cable = await attend(registered)
    answer = await cable.ask({"auth": auth, "body": body(batch()).decode()})
    assert answer.status == 401
    assert "Fieldpost-Signature" not in answer.headers
    assert await stored(registered) == []


async def test_a_signature_for_another_body_or_another_target_is_refused(
    registered: House, attend: Attend
) -> None:
    cable = await attend(registered)
    key = registered.keys.device_key("esp32-1", 1)
    told = signed(key, "esp32-1", body(batch()))
    other = {"body": body(batch(count=2)).decode()}
    assert (await cable.ask(told | other)).status == 401
    elsewhere = sign(key, "esp32-1", "0" * 32, "POST", "/v1/jobs", told["body"].encode())
    assert (await cable.ask(told | {"auth": elsewhere})).status == 401
    assert await stored(registered) == []


async def test_open_mode_lets_in_whoever_has_the_cable(open_mode: House, attend: Attend) -> None:
    cable = await attend(open_mode)
    answer = await cable.ask({"body": body(batch()).decode()})
    assert (answer.status, answer.json["stored"]) == (200, 1)


async def test_a_frame_that_holds_no_delivery_gets_a_400(house: House, attend: Attend) -> None:
    cable = await attend(house)
    for payload in (b"[]", b"{", b'{"body":1}'):
        assert (await cable.ask(payload)).status == 400


class Closed:
    """A door that puts everybody off."""

    def __init__(self, database: Any) -> None:
        pass

    async def deliver(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("not now", 7)


async def test_a_gateway_that_can_not_store_says_when_to_come_back(
    open_house: Any, attend: Attend
) -> None:
    house = await open_house(ingest=Closed)
    key = await house.register("esp32-1")
    told = signed(key, "esp32-1", body(batch()))
    answer = await (await attend(house)).ask(told)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "7")
    assert answer.headers["Fieldpost-Signature"] == expected(key, "esp32-1", told["id"], answer)


HALF = framed({"auth": None, "body": body(batch(first=90)).decode()})[:-20]
NOISE = {
    "a boot log": b"ets Jun  8 2016 00:22:57\r\nrst:0x1 (POWERON_RESET)\r\n",
    "0xFF": b"\xff" * 2000,
    "half a frame": HALF,
    "a wrong checksum": framed({"body": body(batch(first=91)).decode()}).replace(b"esp", b"ESP"),
    "REPL output": b">>> print(1)\r\n1\r\n>>> ",
    "split UTF-8": "°".encode()[:1],
    "CR LF": b"\r\n" * 50,
    "a mebibyte without a newline": b"x" * 1024**2,
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
async def test_noise_costs_no_delivery_and_makes_none(
    noise: bytes, open_mode: House, attend: Attend
) -> None:
    cable = await attend(open_mode)
    for first in (1, 2):
        await cable.write(noise)
        answer = await cable.ask({"body": body(batch(first=first)).decode()})
        assert answer.json["stored"] == 1
    assert len(await stored(open_mode)) == 2


async def test_a_delivery_that_comes_byte_by_byte_is_stored(
    open_mode: House, attend: Attend
) -> None:
    cable = await attend(open_mode)
    frame = framed({"body": body(batch()).decode()})
    for at in range(len(frame)):
        await cable.write(frame[at : at + 1])
    assert (await cable.answer()).json["stored"] == 1


async def test_what_a_board_prints_is_logged_and_can_not_forge_a_line(
    open_mode: House, attend: Attend, caplog: pytest.LogCaptureFixture
) -> None:
    cable = await attend(open_mode)
    with caplog.at_level(logging.INFO, "gateway.serial_port"):
        await cable.write(b"MPY: soft reboot\r\n\x1b[31mred\xff\r\n")
        await cable.ask({"body": body(batch()).decode()})
    said = [line.getMessage() for line in caplog.records if " says: " in line.getMessage()]
    assert [line.partition(" says: ")[2] for line in said] == [
        "MPY: soft reboot",
        "\x1b[31mred\\xff",  # the log's own form escapes the rest: tests/pure/test_log.py
    ]


def test_a_board_that_never_stops_talking_does_not_fill_the_log() -> None:
    now_s = [0.0]
    allowance = Allowance(lambda: now_s[0])
    first = [allowance.left_out() for _ in range(1000)]
    assert first.count(0) == 40
    now_s[0] = 1.0
    assert allowance.left_out() == 960
    assert [allowance.left_out() for _ in range(100)].count(0) == 19


@pytest.mark.parametrize("whose", ["the link's", "the port's own"])
async def test_a_port_is_given_up_while_its_lock_is_held_and_taken_back(
    whose: str, open_mode: House, attend: Attend, tmp_path: Path
) -> None:
    cable = await attend(open_mode)
    (tmp_path / "ports").mkdir()
    name = cable.path.name if whose == "the link's" else cable.path.resolve().name
    lock = os.open(tmp_path / "ports" / f"{name}.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        async with asyncio.timeout(LOCK_S):
            while not is_free(cable.path):
                await asyncio.sleep(0.05)
    finally:
        os.close(lock)
    await cable.opened()
    assert not is_free(cable.path)


def is_free(port: Path) -> bool:
    """Return whether another program could have the port for itself."""
    opened = os.open(port, os.O_RDWR | os.O_NOCTTY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(opened)
    return True


async def test_an_unplugged_board_is_heard_again_each_time_it_is_plugged_in(
    open_mode: House, attend: Attend
) -> None:
    cable = await attend(open_mode)
    for first in range(1, 6):
        frame = framed({"body": body(batch(first=first)).decode()})
        await cable.write(frame[: first * len(frame) // 5])  # the last one whole, its answer lost
        cable.unplug()
        cable.plug()
        await cable.opened()
        await cable.write(frame)
        answer = await cable.answer()
        assert answer.json["stored"] + answer.json["duplicates"] == 1
    assert len(await stored(open_mode)) == 5


async def test_auto_follows_what_is_plugged_in(open_mode: House, tmp_path: Path) -> None:
    cable, there = Cable(tmp_path / "ttyBOARD"), set[str]()
    front = open_mode.app[FRONT]
    ports = Ports(["auto"], front, tmp_path, plugged_in=there.copy, look_every_s=0.02)
    async with attended(ports):
        assert is_free(cable.path)
        there.add(str(cable.path))
        await cable.opened()
        there.clear()
        async with asyncio.timeout(LOCK_S):
            while not is_free(cable.path):
                await asyncio.sleep(0.02)
    cable.unplug()


async def test_a_port_that_is_not_there_is_waited_for_with_growing_waits(
    open_mode: House, tmp_path: Path
) -> None:
    asked = asyncio.Queue[int]()

    def wait_ms(failures: int) -> int:
        asked.put_nowait(failures)
        return 1

    ports = Ports([str(tmp_path / "ttyNONE")], open_mode.app[FRONT], tmp_path, wait_ms=wait_ms)
    async with attended(ports), asyncio.timeout(15):
        assert [await asked.get() for _ in range(4)] == [1, 2, 3, 4]


def test_the_largest_delivery_over_http_fits_into_a_frame() -> None:
    readings = [
        {"id": f"esp32-a4cf12b3d4e5-7f3a17c212-{n}", "sensor": "s" * 40, "text": '"' * 40}
        for n in range(64)
    ]
    sent = json.dumps({"device": "d", "readings": readings}, separators=(",", ":"))
    assert len(sent) < 16 * 1024
    assert len(framed({"auth": "x" * 200, "body": sent})) < frames.MAX_FRAME_BYTES
