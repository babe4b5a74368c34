"""The firmware's uplink over real sockets, against everything that is not its gateway."""

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.device.place import (
    HTML,
    KEY,
    Place,
    Request,
    Role,
    answer,
    asks_for_a_week,
    closes_its_half,
    endless,
    hangs_up,
    open_place,
    raw,
    replays,
    resets,
    says,
    signs_with_another_key,
    slowly,
    stores,
    stores_at_length,
    stores_in_pieces,
    turns_a_503_into_200,
)

HERE = Path(__file__).resolve().parent
DEVICE = HERE.parents[1] / "device"
MICROPYTHON = Path(sys.executable).parent / "micropython"
Drive = Callable[..., Awaitable[dict[str, object]]]


@pytest.fixture(
    params=[
        "cpython",
        pytest.param(
            "micropython",
            marks=pytest.mark.skipif(not MICROPYTHON.exists(), reason="NOT RUN ON MICROPYTHON"),
        ),
    ]
)
def drive(request: pytest.FixtureRequest, tmp_path: Path) -> Drive:
    """Let the board make attempts; gives what it did."""
    interpreter = MICROPYTHON if request.param == "micropython" else sys.executable

    async def run(url: str, *, attempts: int = 1, readings: int = 3, **more: object):
        orders = {"url": url, "key": KEY, "deadline_s": 5, "readings": readings} | more
        orders["attempts"] = attempts
        process = await asyncio.create_subprocess_exec(
            interpreter,
            HERE / "drive_uplink.py",
            DEVICE,
            tmp_path,
            json.dumps(orders),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(out)

    return run


NOT_OURS = {
    "a portal's page": says(200, HTML),
    "a portal that guessed our verdict": says(200),
    "a forger who knows the protocol": says(200, None, "Fieldpost-Protocol: 1"),
    "a forger with a signature of his own": signs_with_another_key,
    "a replayed answer": replays,
    "a signed answer with another status": turns_a_503_into_200,
    "a router's 404": says(404, HTML),
    "a redirect to a log-in": says(302, HTML, "Location: http://portal.example/"),
    "a forged 422": says(422, b"{}", "Fieldpost-Protocol: 1"),
    "a forged 400": says(400, b"{}"),
    "a forged 413": says(413, b""),
    "a proxy's 502": says(502, HTML),
    "a chunked page": raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    ),
    "a page without a length": raw(b"HTTP/1.1 200 OK\r\n\r\n" + HTML),
    "a body that is too large": says(200, b"x" * 20_000),
    "a negative length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
    "an interim answer": raw(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "another protocol": raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
    "a status that is no number": raw(b"HTTP/1.1 two hundred\r\nContent-Length: 0\r\n\r\n"),
    "bytes that are no text": raw(b"HTTP/1.1 200 OK\r\nRetry-After: \xff\xfe\r\n\r\n"),
    "endless headers": endless(b"HTTP/1.1 200 OK\r\n", b"X-Header: 123456789\r\n"),
    "endless noise": endless(b"", b"\x16\x03\x01" * 30),
    "half a head": raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "half a body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    "a half-closed line": closes_its_half,
    "accept, read, then drop": hangs_up,
    "a reset": resets,
}


@pytest.mark.parametrize("name", NOT_OURS)
async def test_what_is_not_the_gateway_removes_nothing_and_is_waited_for(
    name: str, drive: Drive
) -> None:
    async with open_place(Place(NOT_OURS[name])) as place:
        did = await drive(place.url, attempts=2)
    assert did["left"] == 3
    assert did["told"] == []
    assert did["waits"] == [2000, 4000]
    assert did["sockets_left"] == 0
    assert len(place.requests) == 2
    assert not [line for line in did["log"] if "within" in line], "it was known at once"


async def test_even_a_signed_answer_is_not_read_beyond_sixteen_kib(drive: Drive) -> None:
    async with open_place(Place(stores_at_length)) as place:
        did = await drive(place.url)
    assert (did["waits"], did["left"]) == ([2000], 3)


async def test_accept_then_drop_is_waited_for_too(drive: Drive) -> None:
    async with open_place(Place(hangs_up, reads_first=False)) as place:
        did = await drive(place.url, attempts=3)
    assert did["waits"] == [2000, 4000, 8000]
    assert (did["left"], did["told"], did["sockets_left"]) == (3, [], 0)


async def test_a_port_where_nobody_listens_is_waited_for(drive: Drive) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        did = await drive(f"http://127.0.0.1:{free.getsockname()[1]}", attempts=2)
    assert did["waits"] == [2000, 4000]
    assert (did["left"], did["told"], did["sockets_left"]) == (3, [], 0)


async def test_a_name_that_nobody_knows_is_waited_for(drive: Drive) -> None:
    did = await drive("http://no-such-host.invalid", attempts=1)
    assert did["waits"] == [2000]
    assert did["left"] == 3


@pytest.mark.parametrize(
    "role",
    [
        raw(b"", then_wait=True),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", then_wait=True),
        slowly(answer(200, b"{}")),
    ],
    ids=["silence", "silence in the body", "a byte now and then"],
)
async def test_one_deadline_ends_what_never_comes_to_an_end(role: Role, drive: Drive) -> None:
    async with open_place(Place(role, stores)) as place:
        did = await drive(place.url, attempts=2, deadline_s=0.3)
    assert did["waits"] == [2000, 0]  # the second attempt is on a new line, and goes well
    assert did["log"] == ["not sent: no answer within 0.3 s"]
    assert did["sockets_left"] == 0


async def test_a_connect_that_never_comes_to_an_end_leaves_no_socket(drive: Drive) -> None:
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # what is beyond the backlog gets no answer at all
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        did = await drive(f"http://127.0.0.1:{full.getsockname()[1]}", attempts=2, deadline_s=0.3)
    assert did["log"] == ["not sent: no answer within 0.3 s"] * 2
    assert (did["left"], did["sockets_left"]) == (3, 0)


async def test_a_peer_that_does_not_read_is_not_waited_for_beyond_the_deadline(
    drive: Drive,
) -> None:
    async def never_reads(
        request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await asyncio.sleep(3)

    async with open_place(Place(never_reads, reads_first=False)) as place:
        did = await drive(place.url, deadline_s=0.3, readings=64)
    assert did["waits"] == [2000]
    assert (did["left"], did["sockets_left"]) == (64, 0)


async def test_a_signed_answer_removes_what_it_stored(drive: Drive) -> None:
    async with open_place(Place(stores)) as place:
        did = await drive(place.url, readings=64)
    assert did["waits"] == [0]
    assert did["left"] == 0
    assert did["told"] == [["acked", [f"d-7f3a17c212-{n}" for n in range(1, 65)]]]
    assert place.requests[0].head.startswith("POST /v1/readings HTTP/1.1\r\n")
    assert "Connection: close" in place.requests[0].head


async def test_an_answer_may_come_in_pieces_and_with_headers_in_any_case(drive: Drive) -> None:
    async with open_place(Place(stores_in_pieces)) as place:
        did = await drive(place.url)
    assert (did["waits"], did["left"]) == ([0], 0)


async def test_without_a_key_the_gateways_header_makes_it_ananswer(drive: Drive) -> None:
    async with open_place(Place(says(200), says(200, None, "Fieldpost-Protocol: 1"))) as place:
        did = await drive(place.url, attempts=2, key=None)
    assert (did["waits"], did["left"]) == ([2000, 0], 0)
    assert "Authorization" not in place.requests[0].head


async def test_a_prefix_of_the_gateways_address_stands_before_the_path(drive: Drive) -> None:
    async with open_place(Place(stores)) as place:
        await drive(place.url + "/field/")
    assert place.requests[0].head.startswith("POST /field/v1/readings HTTP/1.1\r\n")


async def test_a_stranger_can_ask_for_five_minutes_and_the_gateway_for_an_hour(
    drive: Drive,
) -> None:
    stranger = says(503, HTML, "Retry-After: 604800")
    unfinished = raw(b"HTTP/1.1 503 X\r\nRetry-After: 7\r\n\r\n")
    async with open_place(Place(stranger, unfinished, asks_for_a_week)) as place:
        did = await drive(place.url, attempts=3)
    assert did["waits"] == [300_000, 7_000, 3_600_000]
    assert did["left"] == 3


async def test_two_hundred_sends_leave_no_socket(drive: Drive) -> None:
    roles = [says(200, HTML), hangs_up, resets, closes_its_half, stores] * 40
    async with open_place(Place(*roles)) as place:
        did = await drive(place.url, attempts=200, readings=0)
    assert len(place.requests) == 200
    assert did["waits"].count(0) == 40
    assert did["sockets_left"] == 0
