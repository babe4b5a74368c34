"""What arrives on the socket need not be what a client library would send."""

import asyncio
import gzip
import itertools
import json

import pytest

from gateway.web.body import MAX_BYTES
from tests.web.conftest import Open
from tests.web.house import House, batch, body, parsed, problem_of, sign

CLOSE = b"Connection: close\r\n"
OPEN = b"Host: localhost\r\nContent-Type: application/json\r\n"


def post(sent: bytes, fields: bytes = b"", length: int | None = None) -> bytes:
    """Return a POST of readings to a gateway in open mode, its length as it is or as given."""
    count = len(sent) if length is None else length
    head = b"POST /v1/readings HTTP/1.1\r\n" + OPEN + CLOSE + fields
    return head + b"Content-Length: %d\r\n\r\n" % count + sent


def chunked(*chunks: bytes) -> bytes:
    head = b"POST /v1/readings HTTP/1.1\r\n" + OPEN + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(chunks)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"NOT HTTP AT ALL\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /status HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /status HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 9000 + b"\r\n\r\n",
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /status HTTP/1.1\r\n" + b"X: y\r\n" * 2000 + b"\r\n",
        b"POST /v1/readings HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/readings HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"POST /v1/readings HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ],
    ids=["TLS", "text", "version", "field", "long field", "long target", "many fields",
         "negative length", "two lengths", "no length"],
)  # fmt: skip
async def test_what_is_not_http_gets_a_problem_and_no_traceback_in_the_log(
    house: House, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = parsed(await house.raw(sent))
    assert problem_of(answer)["detail"] == "this is not HTTP/1.1"
    assert answer.status == 400
    assert not [record for record in caplog.records if record.exc_info]


async def test_an_unknown_expectation_gets_a_problem(house: House) -> None:
    sent = b"GET /nothing HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nX-Request-ID: r1\r\n\r\n"
    answer = parsed(await house.raw(sent))
    assert problem_of(answer) | {"request_id": "r1"} == problem_of(answer)
    assert answer.status == 417


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/readings/", 404),
        ("GET", "//status", 404),
        ("GET", "/%00", 404),
        ("GET", "/%ff%fe", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/page/status.html", 404),
        ("OPTIONS", "*", 404),
        ("DELETE", "/v1/readings", 405),
        ("PATCH", "/healthz", 405),
        ("POST", "/status", 405),
        ("CONNECT", "example.org:80", 404),
    ],
)
async def test_what_is_not_there_gets_a_problem(
    house: House, method: str, target: str, status: int
) -> None:
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = parsed(await house.raw(head.encode()))
    assert problem_of(answer)["status"] == status
    assert ("Allow" in answer.headers) == (status == 405)


async def test_head_is_answered_like_get_without_the_body(house: House) -> None:
    for target, status in ((b"/healthz", 200), (b"/status", 401), (b"/nothing", 404)):
        head = b"HEAD " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        raw = await house.raw(head)
        assert raw.endswith(b"\r\n\r\n")
        answer = parsed(raw)
        assert answer.status == status
        assert answer.headers["Fieldpost-Protocol"] == "1"


async def test_a_body_that_drips_is_cut_off_at_the_deadline(open_house: Open) -> None:
    house = await open_house(open=True, body_timeout_s=0.2)
    drops = [bytes([byte]) for byte in body(batch())]
    begun = post(b"", length=len(drops)).replace(CLOSE, b"")
    answer = parsed(await house.raw(begun, *drops, pause_s=0.05, wait=False))
    assert problem_of(answer)["status"] == 408
    assert answer.headers["Connection"] == "close"
    assert (await house.operator("/v1/readings")).json["readings"] == []


async def test_a_body_in_two_pieces_is_one_body(open_mode: House) -> None:
    whole = post(body(batch()))
    answer = parsed(await open_mode.raw(whole[:-20], whole[-20:], pause_s=0.05))
    assert answer.json["stored"] == 1


async def test_a_chunked_body_is_a_body(open_mode: House) -> None:
    sent = body(batch())
    chunk = b"%x\r\n" % len(sent) + sent + b"\r\n"
    assert parsed(await open_mode.raw(chunked(chunk, b"0\r\n\r\n"))).json["stored"] == 1


@pytest.mark.parametrize("chunk", [b"zz\r\nabc\r\n", b"-1\r\n", b"3\r\nabcdef\r\n0\r\n\r\n"])
async def test_a_corrupt_chunk_is_a_problem(open_mode: House, chunk: bytes) -> None:
    answer = parsed(await open_mode.raw(chunked(chunk)))
    assert problem_of(answer)["status"] == 400


async def test_a_chunk_that_turns_corrupt_on_the_way_ends_at_the_deadline(open_house: Open) -> None:
    house = await open_house(open=True, body_timeout_s=0.2)  # aiohttp only tells of it afterwards
    begun, corrupt = chunked(b"3\r\nabc\r\n"), b"zz\r\n"
    answer = parsed(await house.raw(begun, corrupt, pause_s=0.05, wait=False))
    assert problem_of(answer)["status"] == 408


async def test_a_chunked_body_without_end_is_cut_off_at_the_bound(open_mode: House) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = parsed(
        await open_mode.raw(chunked(), *[chunk] * (MAX_BYTES // 0x10000 + 8), wait=False)
    )
    assert problem_of(answer)["status"] == 413


async def test_a_client_that_hangs_up_inside_its_body_is_no_fault_of_ours(
    open_mode: House, caplog: pytest.LogCaptureFixture
) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", open_mode.port)
    writer.write(post(b"{", length=100))
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await open_mode.ask("GET", "/healthz")).status == 200
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_length_beyond_all_bounds_is_refused_before_the_body_comes(house: House) -> None:
    key = await house.register("esp32-1")
    authorization = sign(key, "esp32-1", "0" * 32, "POST", "/v1/readings", b"")
    fields = f"Authorization: {authorization}\r\n".encode()
    answer = parsed(await house.raw(post(b"", fields, length=MAX_BYTES + 1), wait=False))
    assert problem_of(answer)["status"] == 413
    assert answer.headers["Fieldpost-Signature"] is None


@pytest.mark.parametrize(
    "target", ["/v1/readings?", "http://localhost/v1/readings", "/v1/readings?a=%c3%a9&b=%41#c"]
)
async def test_a_target_is_signed_as_it_stands_in_the_request_line(
    house: House, target: str
) -> None:
    key, sent = await house.register("esp32-1"), body(batch())
    authorization = sign(key, "esp32-1", "0" * 32, "POST", target, sent)
    whole = post(sent, f"Authorization: {authorization}\r\n".encode())
    whole = whole.replace(b" /v1/readings ", f" {target} ".encode(), 1)
    assert parsed(await house.raw(whole)).status == 200


async def test_a_stranger_is_refused_before_the_body_comes(house: House) -> None:
    answer = parsed(await house.raw(post(b"", length=1000), wait=False))
    assert problem_of(answer)["status"] == 401


async def test_a_bomb_is_not_inflated_beyond_the_bound(open_mode: House) -> None:
    bomb = gzip.compress(gzip.compress(b" " * 50_000_000))
    fields = b"Content-Encoding: gzip\r\n"
    assert parsed(await open_mode.raw(post(bomb, fields))).status in (400, 413)
    bomb = gzip.compress(b" " * 10_000_000)
    assert parsed(await open_mode.raw(post(bomb, fields))).status == 413


async def test_one_connection_carries_many_requests_and_survives_a_refused_one(
    open_mode: House,
) -> None:
    good = post(body(batch())).replace(CLOSE, b"")
    bad = post(b"no json").replace(CLOSE, b"")
    raw = await open_mode.raw(good + bad + good + post(body(batch())))
    assert [int(part.split()[0]) for part in raw.split(b"HTTP/1.1 ")[1:]] == [200, 400, 200, 200]


@pytest.mark.parametrize("given", ["r1", "x" * 64, "a b", "~!"])
async def test_the_callers_request_id_comes_back(open_mode: House, given: str) -> None:
    fields = f"X-Request-ID: {given}\r\n".encode()
    answer = parsed(await open_mode.raw(post(body(batch()), fields)))
    assert answer.headers["X-Request-ID"] == given
    assert json.loads(answer.body)["request_id"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a\tb", "é", "\u2028"])
async def test_a_request_id_that_is_none_is_replaced(open_mode: House, given: str) -> None:
    fields = b"X-Request-ID: " + given.encode() + b"\r\n"
    answer = parsed(await open_mode.raw(post(body(batch()), fields)))
    made = answer.headers["X-Request-ID"]
    assert answer.status == 200
    assert made != given
    assert made.isascii()
    assert 1 <= len(made) <= 64
    again = parsed(await open_mode.raw(post(body(batch()), fields)))
    assert again.headers["X-Request-ID"] != made


async def test_few_large_bodies_are_read_at_once_and_small_ones_all_the_while(
    open_mode: House,
) -> None:
    large = post(b" " * 200_000, length=300_000)
    asked = [asyncio.ensure_future(open_mode.raw(large, wait=False)) for _ in range(20)]
    for refused in itertools.islice(asyncio.as_completed(asked), 12):
        assert parsed(await refused).status == 503
    assert parsed(await open_mode.raw(post(body(batch())))).status == 200
    still_read = [one for one in asked if not one.done()]
    assert len(still_read) == 8
    for one in still_read:
        one.cancel()
    await asyncio.wait(still_read)


async def test_beyond_the_most_connections_it_hangs_up_and_goes_on_answering(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.web.server._MOST_CONNECTIONS", 20)
    opened = [await asyncio.open_connection("127.0.0.1", house.port) for _ in range(40)]
    async with asyncio.timeout(10):
        ended = await asyncio.gather(
            *(asyncio.wait_for(reader.read(1), 1) for reader, _ in opened), return_exceptions=True
        )
    hung_up = [end for end in ended if end == b"" or isinstance(end, ConnectionError)]
    assert len(hung_up) >= 20
    for _, writer in opened:
        writer.close()
    answer = await house.ask("GET", "/healthz")
    assert answer.status == 200
