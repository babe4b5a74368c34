"""The signatures against the vectors that both sides' tests read, and the keys they are made of."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.keys import Keys
from gateway.web import signing

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "signing.json").read_text("utf-8"))

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@each_vector
def test_the_authorization_of_every_vector_carries_the_right_signature(vector: Any) -> None:
    given = signing.parse(vector["authorization"])
    assert given is not None
    assert (given.device, given.nonce) == (vector["device"], vector["nonce"])
    assert given.signature == signing.request_signature(
        bytes.fromhex(vector["key"]),
        vector["method"],
        vector["target"],
        vector["device"],
        vector["nonce"],
        sha256(vector["body"]),
    )


@each_vector
def test_the_answer_of_every_vector_is_signed_as_it_says(vector: Any) -> None:
    answer = vector["answer"]
    assert answer["signature"] == signing.answer_signature(
        bytes.fromhex(vector["key"]),
        vector["device"],
        vector["nonce"],
        answer["status"],
        answer["retry_after"] or "",
        sha256(answer["body"]),
    )


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Fieldpost",
        'Fieldpost device="", nonce="{n}", signature="{s}"',
        'Fieldpost device="a b", nonce="{n}", signature="{s}"',
        'Fieldpost device="a", nonce="{N}", signature="{s}"',
        'Fieldpost device="a", nonce="{n}0", signature="{s}"',
        'Fieldpost device="a", nonce="{n}", signature="{S}"',
        'Fieldpost device="a", nonce="{n}", signature="{s}", more="x"',
        'Bearer device="a", nonce="{n}", signature="{s}"',
    ],
)
def test_what_is_not_in_the_form_is_no_authorization(authorization: str) -> None:
    given = authorization.format(n="0" * 32, N="A" * 32, s="0" * 64, S="F" * 64)
    assert signing.parse(given) is None


def test_the_name_of_the_scheme_may_be_written_in_any_case() -> None:
    form = '{} device="a", nonce="' + "0" * 32 + '", signature="' + "0" * 64 + '"'
    assert signing.parse(form.format("fieldpost")) == signing.parse(form.format("FIELDPOST"))
    assert signing.parse(form.format("fieldpost")) is not None


def test_a_target_that_is_not_utf_8_is_signed_as_the_bytes_that_were_sent() -> None:
    decoded = b"/v1/\xff".decode("utf-8", "surrogateescape")
    told = b"fieldpost-request-1\nPOST\n/v1/\xff\na\n" + b"0" * 32 + b"\n" + b"1" * 64
    right = hmac.new(b"k", told, "sha256").hexdigest()
    given = signing.request_signature(b"k", "POST", decoded, "a", "0" * 32, "1" * 64)
    assert given == right


def test_a_device_key_is_made_of_master_key_name_and_generation() -> None:
    keys = Keys(bytes(range(32)), "t")
    # printf 'fieldpost-device-key-1\nesp32-1\n1' | openssl dgst -sha256 -mac HMAC -macopt hexkey:…
    assert keys.device_key("esp32-1", 1).hex() == KEY_OF_ESP32_1
    others = {keys.device_key("esp32-1", 2), keys.device_key("esp32-2", 1)}
    assert len(others | {keys.device_key("esp32-1", 1)}) == 3


KEY_OF_ESP32_1 = "6439ff79a74b564e2164a54caa4013ec879f93bfe2b0ed14c8a6d903bb789cea"
