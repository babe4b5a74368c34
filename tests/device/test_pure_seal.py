import json
from binascii import hexlify, unhexlify

import seal

_VECTORS = __file__.rsplit("/", 2)[0] + "/vectors/signing.json"
_KEY = bytes(range(32))
_NONCE = "0123456789abcdef0123456789abcdef"


def _vectors():
    with open(_VECTORS, "rb") as file:
        return json.load(file)


def _opened(one):
    return seal.Seal(one["device"], unhexlify(one["key"])), one["answer"]


def test_hmac_is_that_of_rfc_4231():
    made = seal.hmac_sha256(b"Jefe", b"what do ya want for nothing?")
    assert hexlify(made) == b"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"


def test_requests_are_signed_as_in_the_vectors():
    for one in _vectors():
        made = _opened(one)[0].authorization(
            one["method"], one["target"], one["nonce"], seal.sha256_hex(one["body"].encode())
        )
        assert made == one["authorization"], one["name"]


def test_answers_are_verified_as_in_the_vectors():
    for one in _vectors():
        sealed, answer = _opened(one)
        assert sealed.signed(
            one["nonce"],
            answer["status"],
            answer["retry_after"],
            answer["signature"],
            answer["body"].encode(),
        ), one["name"]


def test_nothing_of_a_signed_answer_can_be_changed():
    for one in _vectors():
        sealed, answer = _opened(one)
        right = [
            one["nonce"],
            answer["status"],
            answer["retry_after"],
            answer["signature"],
            answer["body"].encode(),
        ]
        for at, wrong in enumerate(
            (_NONCE + "0", answer["status"] + 1, "8", "0" * 64, answer["body"].encode() + b" ")
        ):
            forged = list(right)
            forged[at] = wrong
            assert not sealed.signed(*forged), (one["name"], at)


def test_an_answer_to_another_board_is_not_ours():
    one = _vectors()[0]
    answer = one["answer"]
    other = seal.Seal("another", unhexlify(one["key"]))
    assert not other.signed(
        one["nonce"], answer["status"], None, answer["signature"], answer["body"].encode()
    )


def test_a_missing_short_or_uppercase_signature_is_none():
    one = _vectors()[0]
    sealed, answer = _opened(one)
    for signature in (None, "", answer["signature"][:-1], answer["signature"].upper(), "é" * 32):
        assert not sealed.signed(
            one["nonce"], answer["status"], None, signature, answer["body"].encode()
        )


def test_with_a_key_only_a_signed_answer_counts():
    sealed = seal.Seal("d", _KEY)
    for status in (200, 400, 404, 413, 422, 429, 500, 503):
        assert sealed.counts(status, True, None)
        assert not sealed.counts(status, False, "1")


def test_in_open_mode_only_the_gateways_own_answer_counts():
    sealed = seal.Seal("d", None)
    assert sealed.authorization("POST", "/", _NONCE, "") is None
    for status in (200, 404, 422, 503):
        assert sealed.counts(status, False, "1")
        assert not sealed.counts(status, False, None)
        assert not sealed.counts(status, False, "2")


def test_a_gateway_that_refuses_the_key_can_not_sign_with_it_and_is_still_heard():
    sealed = seal.Seal("d", _KEY)
    for status in (401, 403):
        assert sealed.counts(status, False, "1")
        assert not sealed.counts(status, False, None)  # a portal's log-in


def test_whole_seconds_are_obeyed_up_to_a_limit():
    for text, signed, asked_ms in (
        ("7", True, 7000),
        ("7", False, 7000),
        ("3600", True, 3600000),
        ("3601", True, 3600000),
        ("301", False, 300000),
        ("99999999999999999999", True, 3600000),
        ("99999999999999999999", False, 300000),
        ("0", True, 0),
    ):
        assert seal.asked_ms(text, signed, lambda: 0.0) == asked_ms, text


def test_what_was_asked_of_all_boards_has_jitter_within_its_limit():
    assert seal.asked_ms("7", True, lambda: 0.5) == 8000
    assert seal.asked_ms("300", False, lambda: 0.5) == 300000


def test_other_forms_of_retry_after_ask_nothing():
    for text in (None, "", "soon", "-5", "1.5", "+1", "Wed, 21 Oct 2026 07:28:00 GMT", "²", "1 2"):
        assert seal.asked_ms(text, True, lambda: 0.5) == 0, text
