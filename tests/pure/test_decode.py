"""Bytes to a batch: never anything but a batch or a refusal, whatever the bytes."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.decode import decode, parse_id
from gateway.errors import Rejected
from gateway.model import Reading

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(scalars, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8)
fields = st.sampled_from(["id", "sensor", "value", "text", "error", "unit", "at_ms", "boot", "x"])
readings = st.lists(st.dictionaries(fields, values) | values, max_size=5)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_refused(body: bytes) -> None:
    with pytest.raises(Rejected) as refused:
        decode(body)
    assert refused.value.status in (400, 422)


@given(readings)
def test_each_reading_of_valid_json_gets_a_verdict(sent: list[object]) -> None:
    body = json.dumps({"device": "d", "readings": sent}).encode()
    if "\\ud" in body.decode().lower():  # may be a lone surrogate: then it is refused whole
        return
    batch = decode(body)
    judged = [item.place for item in batch.items] + [refusal.place for refusal in batch.refusals]
    assert sorted(judged) == list(range(len(sent)))


@given(
    st.fixed_dictionaries(
        {"id": st.text(max_size=130), "sensor": st.text(max_size=66)},
        optional={
            "value": st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
            "text": st.text(max_size=300),
            "unit": st.text(max_size=40) | st.integers(),
        },
    )
)
def test_escapes_change_no_verdict(reading: dict[str, object]) -> None:
    """A body without escapes takes a shorter way past the control characters."""
    if any(0xD800 <= ord(c) < 0xE000 for v in reading.values() if isinstance(v, str) for c in v):
        return
    verdicts = []
    for ascii_only in (True, False):
        sent = {"device": "d", "readings": [reading]}
        batch = decode(json.dumps(sent, ensure_ascii=ascii_only).encode())
        verdicts.append(([i.reading for i in batch.items], [r.reason for r in batch.refusals]))
    assert verdicts[0] == verdicts[1]


def test_a_well_formed_reading_and_a_mended_one_are_equal() -> None:
    good = b'{"id":"r","sensor":"s","value":1,"unit":"Cel","at_ms":5}'
    with_unknown = good[:-1] + b',"unknown":1}'
    whole, mended = (
        decode(b'{"device":"d","readings":[%s]}' % body).items[0].reading
        for body in (good, with_unknown)
    )
    assert whole == mended == Reading(id="r", sensor="s", value=1.0, unit="Cel", at_ms=5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("d-7f3a17c212-123", ("d", "7f3a17c212", 123)),
        ("a-7f3a17c21-5-7f3a17c212-3", ("a-7f3a17c21-5", "7f3a17c212", 3)),
        ("d-7f3a17c2-1", None),  # no counter behind the nonce
        ("d-7F3A17c212-1", None),
        ("d-7f3a17c212-0", None),
        ("d-7f3a17c212-1\n", None),
        ("\u00fc-7f3a17c212-1", None),
        ("d-7f3a17c212-\u0661", None),
        ("d-7f3a17c212-" + "9" * 12, ("d", "7f3a17c212", 10**12 - 1)),
        ("d-7f3a17c212-1" + "0" * 12, None),
        ("-7f3a17c212-1", None),
    ],
)
def test_an_id_is_read_from_the_right(text: str, parts: tuple[str, str, int] | None) -> None:
    assert parse_id(text) == parts


def test_a_quarantined_body_is_what_was_sent() -> None:
    batch = decode(b'{"device":"d","readings":[ {"id" : 7, "value":1e999} ]}')
    assert batch.refusals[0].body == '{"id" : 7, "value":1e999}'


def test_health_and_lost_are_read() -> None:
    sent = {
        "device": "d", "readings": [],
        "health": {"rssi": -61, "crash": None},
        "lost": [{"boot": "7f3a17c212", "from": 1, "to": 2}],
    }  # fmt: skip
    batch = decode(msgspec.json.encode(sent))
    assert batch.health is not None
    assert batch.health.rssi == -61
    assert [(lost.boot, lost.first, lost.last) for lost in batch.lost] == [("7f3a17c212", 1, 2)]
