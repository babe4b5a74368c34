import json

import seal
import wire

_VECTORS = __file__.rsplit("/", 2)[0] + "/vectors/wire.json"
_ID = "esp32-a4cf12b3d4e5-7f3a17c212-%d"


def _vectors(part):
    with open(_VECTORS, "rb") as file:
        return json.load(file)[part]


def _record(reading):
    given = dict(reading)
    return wire.record(given.pop("id"), given.pop("sensor"), **given)


def _body(envelope, records, max_bytes=wire.MAX_BODY_BYTES):
    body = wire.Body(envelope, records, max_bytes)
    made = b"".join(body.pieces())
    assert len(made) == len(body) <= max_bytes
    assert body.sha256_hex == seal.sha256_hex(made)
    return json.loads(made), body.taken


def test_records_are_those_of_the_vectors():
    for one in _vectors("records"):
        assert json.loads(_record(one["reading"])) == one["record"], one["name"]


def test_an_ordinary_record_is_small_enough_to_lie_inline():
    made = wire.record(_ID % 123456, "dht22.temperature", 21.5, "Cel", 1764529200123)
    assert len(made) <= 122
    assert b" " not in made


def test_what_is_no_finite_number_becomes_an_error():
    for value in (float("nan"), float("inf"), -float("inf"), 10**400):
        fields = json.loads(wire.record("a", "s", value, "Cel"))
        assert fields[2] is None
        assert fields[6] == "not a finite number", value


def test_what_is_no_number_becomes_an_error():
    for value in ([1], {}, "21.5", b"x"):
        assert json.loads(wire.record("a", "s", value))[6] == "not a number"


def test_a_text_far_from_ascii_still_fits_the_outbox():
    made = wire.record("a", "s", text="🌦" * 255)
    assert len(made) <= wire.MAX_RECORD_BYTES
    assert json.loads(made)[7].startswith("🌦" * 64)


def test_a_sensors_name_with_quotes_can_be_sent():
    made = wire.record("a", 'the "old" \\ one', 1.5)
    assert json.loads(wire.reading(made)) == {"id": "a", "sensor": "the 'old' / one", "value": 1.5}


def test_bodies_are_those_of_the_vectors():
    for one in _vectors("bodies"):
        made, taken = _body(one["envelope"], [text.encode() for text in one["records"]])
        assert made == one["body"], one["name"]
        assert taken == len(one["records"])


def test_a_value_keeps_its_own_digits():
    for digits in ("0.1000000000000000055", "44.10", "1e-7", "-0.0", "123456789.123456789"):
        record = f'["a-000000011-1","s",{digits},"Cel",5]'
        assert f'"value":{digits},' in wire.reading(record.encode()).decode()
        record = f'["a-000000011-1","s",{digits}]'
        assert wire.reading(record.encode()).decode().endswith(f'"value":{digits}' + "}")


def test_a_body_takes_what_fits_and_the_rest_waits():
    records = [wire.record(_ID % n, "s", n) for n in range(64)]
    made, taken = _body({"device": "d"}, records, 1024)
    assert 0 < taken < 64
    assert [one["id"] for one in made["readings"]] == [_ID % n for n in range(taken)]


def test_a_full_batch_of_ordinary_readings_fits_in_sixteen_kib():
    records = [
        wire.record("d" * 64 + f"-7f3a17c2123456-{n}", "s" * 64, -1.5, "Cel", None, 1 << 40)
        for n in range(40)
    ]
    _, taken = _body({"device": "d" * 64}, records)
    assert taken == 40


def test_a_record_of_somebody_else_is_unreadable():
    for data in (b"", b"{}", b"[", b"\xff\xfe", b'["a","b"]', b'[1,"s",2]', b'["a",null,2]', b"5"):
        for use in (wire.reading_id, wire.stamp, wire.reading):
            try:
                use(data)
            except wire.Unreadable:
                continue
            raise AssertionError(data)


def test_a_stamp_is_a_time_or_an_uptime_with_its_boot():
    assert wire.stamp(wire.record(_ID % 1, "s", 1, at_ms=77)) == (77, "7f3a17c212", None)
    assert wire.stamp(wire.record(_ID % 1, "s", 1, up_ms=5)) == (None, "7f3a17c212", 5)
    assert wire.stamp(wire.record("x", "s", 1, up_ms=5)) == (None, None, 5)


def test_answers_are_judged_as_in_the_vectors():
    for one in _vectors("answers"):
        action, rejected, server_ms = wire.judge(one["status"], one["body"].encode(), one["sent"])
        assert action == one["action"], one["name"]
        assert sorted(rejected.items()) == [tuple(pair) for pair in one["rejected"]], one["name"]
        assert server_ms == one["server_ms"], one["name"]


def test_a_list_that_answers_for_the_whole_batch_is_no_answer():
    nested = b"[" * 2000 + b"]" * 2000
    assert wire.judge(200, nested, 1)[0] == wire.AGAIN
