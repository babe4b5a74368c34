"""`Prefer` and `Idempotency-Key`, as their RFCs write them."""

import pytest

from gateway.errors import Rejected
from gateway.web import idempotency, prefer


@pytest.mark.parametrize(
    ("values", "wait_s"),
    [
        ([], None),
        (["wait=10"], 10),
        (["WAIT = 10"], 10),
        (['wait="10"'], 10),
        (["respond-async, wait=10"], 10),
        (["respond-async", "wait=10"], 10),
        (["wait=10; foo=bar, handling=lenient"], 10),
        (["wait=10, wait=20"], 10),
        ([", ,wait=10,"], 10),
        (["wait=0"], 0),
        (["wait=31"], 30),
        (["wait=" + "9" * 5000], 30),
        (["wait"], None),
        (["wait="], None),
        (["wait=-1"], None),
        (["wait=1.5"], None),
        (["wait=٣"], None),
        (["await=10"], None),
        (['foo="wait=10, wait=20"'], None),
    ],
)
def test_wait_is_read_as_rfc_7240_writes_it(values: list[str], wait_s: int | None) -> None:
    assert prefer.wait_s(values) == wait_s


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ('"8e03978e-40d5-43dd-bc93-6894a57f9324"', "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ('"a b"', "a b"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ("  k  ", "k"),
        ('"' + "x" * 255 + '"', "x" * 255),
    ],
)
def test_a_key_is_a_string_or_a_token(given: str, key: str) -> None:
    assert idempotency.key([given]) == key


@pytest.mark.parametrize("given", ["", '""', '"', '"a', "a b", r'"a\b"', '"é"', "a,b", "x" * 256])
def test_what_is_neither_is_refused(given: str) -> None:
    with pytest.raises(Rejected):
        idempotency.key([given])


def test_there_is_one_key_or_none() -> None:
    assert idempotency.key([]) is None
    with pytest.raises(Rejected):
        idempotency.key(["a", "a"])
