"""Whatever is sent to `POST /v1/readings`: an answer that names the fault, and never a 500."""

import gzip
import json
import zlib
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.web.house import BOOT, House, batch, body, parsed, problem_of

FEW = settings(
    # The same gateway for all examples is what a real one is, too; and a busy machine is no fault.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text()
    | st.sampled_from(["\x00", "\ud800", "x" * 300, f"esp32-1-{BOOT}-1", 1e308, 2**63, 10**400])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=4
)
READING = {
    "id": st.integers(1, 9).map(lambda n: f"esp32-1-{BOOT}-{n}") | values,
    "sensor": st.just("soil") | values,
}
CONTENT = {"value": st.floats(-1, 1) | values, "text": values, "error": values}
REST = dict.fromkeys(["unit", "at_ms", "boot", "up_ms", "more"], values)
readings = values | st.fixed_dictionaries(READING, optional=CONTENT | REST)
PARTS = ["boot", "seq", "up_ms", "sent_ms", "health", "lost", "more"]
health = st.dictionaries(st.sampled_from(["period_ms", "outbox", "crash", "firmware"]), values)
lost = st.lists(values | st.fixed_dictionaries({"boot": values, "from": values, "to": values}))
envelopes = st.fixed_dictionaries(
    {"device": st.just("esp32-1"), "readings": st.lists(readings, max_size=5)},
    optional=dict.fromkeys(PARTS, values) | {"health": health | values, "lost": lost | values},
)


async def check(house: House, sent: bytes, **headers: str) -> None:
    """Send it signed; the answer must be one that a board knows what to do with."""
    answer = await house.signed("esp32-1", sent, **headers)
    event(f"status {answer.status}")
    if answer.status == 200:
        verdicts, count = answer.json, len(json.loads(unpacked(sent, headers))["readings"])
        told = verdicts["stored"] + verdicts["duplicates"] + len(verdicts["rejected"])
        assert told == count
    else:
        assert answer.status in (400, 403, 413, 415, 422)
        problem_of(answer)


def unpacked(sent: bytes, headers: dict[str, str]) -> bytes:
    encoding = headers.get("Content_Encoding", "")
    return {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(encoding, bytes)(sent)


@FEW
@given(sent=st.binary(max_size=300))
async def test_random_bytes_get_an_answer(registered: House, sent: bytes) -> None:
    await check(registered, sent)


@FEW
@given(sent=st.binary(max_size=300), encoding=st.sampled_from(["gzip", "deflate", "br", "x" * 99]))
async def test_random_bytes_said_to_be_encoded_get_an_answer(
    registered: House, sent: bytes, encoding: str
) -> None:
    await check(registered, sent, Content_Encoding=encoding)


@FEW
@given(value=values)
async def test_any_json_gets_an_answer(registered: House, value: Any) -> None:
    await check(registered, body(value))


@FEW
@given(value=envelopes)
async def test_any_batch_gets_a_verdict_for_each_reading(registered: House, value: Any) -> None:
    await check(registered, body(value))


@FEW
@given(cut=st.integers(0, 200), put=st.binary(max_size=4))
async def test_a_batch_with_bytes_changed_gets_an_answer(
    registered: House, cut: int, put: bytes
) -> None:
    whole = body(batch())
    await check(registered, whole[:cut] + put + whole[cut + len(put) :])


@FEW
@given(cut=st.integers(0, 150), put=st.binary(min_size=1, max_size=2))
async def test_a_packed_batch_with_bytes_changed_gets_an_answer(
    registered: House, cut: int, put: bytes
) -> None:
    whole = gzip.compress(body(batch(count=2)), mtime=0)
    await check(registered, whole[:cut] + put + whole[cut + len(put) :], Content_Encoding="gzip")


@pytest.mark.parametrize(
    "sent",
    [
        b"[" * 16_000,
        b'{"readings":' * 1300,
        b'{"device": "esp32-1", "readings": [' + b"[" * 15_000 + b"]" * 900 + b"]}",
        b'{"device": "esp32-1", "readings": [{"id": "a", "sensor": "s", "value": NaN}]}',
        b'{"device": "esp32-1", "readings": [{"id": "a", "sensor": "s", "value": 1e999}]}',
        b'{"device": "esp32-1", "readings": [{"id": "a", "sensor": "s", "value": '
        + b"9" * 5000
        + b"}]}",
        b'{"device": "esp32-1", "readings": [{"id": "\\ud800", "sensor": "s", "value": 1}]}',
        b'{"device": "esp32-1", "readings": [{"id": "a\\u0000b", "sensor": "s", "value": 1}]}',
        b'{"device": "esp32-1", "device": 1, "readings": []}',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
    ],
    ids=range(11),
)
async def test_what_broke_others_gets_an_answer(registered: House, sent: bytes) -> None:
    answer = await registered.signed("esp32-1", sent)
    assert answer.status in (200, 400, 422)
    if answer.status == 200:
        assert answer.json["stored"] == 0


names = st.sampled_from(["device", "sensor", "from", "to", "after", "limit", "more"])
queries = st.lists(
    st.tuples(names, st.text(st.characters(codec="utf-8")) | st.integers().map(str)), max_size=3
).map(urlencode)
raw_queries = st.binary(max_size=40).map(
    lambda sent: bytes(set(sent) - set(b" \r\n\0#")).decode("latin-1")
)


@FEW
@given(query=queries | raw_queries)
async def test_any_query_gets_an_answer(open_mode: House, query: str) -> None:
    line = f"GET /v1/readings?{query} HTTP/1.1\r\n".encode("latin-1")
    answer = parsed(await open_mode.raw(line + b"Host: localhost\r\nConnection: close\r\n\r\n"))
    event(f"status {answer.status}")
    assert answer.status in (200, 400)


@FEW
@given(sent=st.binary(max_size=200))
async def test_any_bytes_on_the_socket_get_no_500(open_mode: House, sent: bytes) -> None:
    raw = await open_mode.raw(sent + b"\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n" * 2)
    statuses = [int(part.split()[0]) for part in raw.split(b"HTTP/1.1 ")[1:]]
    assert all(status < 500 for status in statuses)
