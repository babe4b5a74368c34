"""The frames of a cable among everything else that a serial line carries."""

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import frames
from gateway.frames import MAX_FRAME_BYTES, Payload, Splitter

VECTORS = json.loads(Path(__file__).parents[1].joinpath("vectors/frames.json").read_text())

BODY = b'{"auth":null,"body":"{\\"device\\":\\"d\\",\\"readings\\":[]}"}'


def framed(payload: bytes) -> bytes:
    """Return the frame, put together here and not by the code under test."""
    return b"\x1eFP1 " + f"{len(payload)} {zlib.crc32(payload):08x} ".encode() + payload + b"\n"


FRAME = framed(BODY)

NOISE = {
    "a boot log": b"ets Jun  8 2016 00:22:57\r\nrst:0x1 (POWERON_RESET),boot:0x13\r\n",
    "0xFF": b"\xff" * 500,
    "half a frame": FRAME[: len(FRAME) // 2],
    "a head alone": b"\x1eFP1 ",
    "a mark alone": b"\x1e",
    "many marks": b"\x1e" * 300,
    "a frame without its last byte": FRAME[:-1],
    "a frame that lost a byte": FRAME[:30] + FRAME[31:],
    "a wrong checksum": FRAME.replace(b"null", b"nuLL"),
    "a wrong length": FRAME.replace(b"%d" % len(BODY), b"%d" % (len(BODY) - 1), 1),
    "a length beyond all bounds": b"\x1eFP1 99999 00000000 {",
    "a length without an end": b"\x1eFP1 " + b"9" * 100,
    "an unknown version": FRAME.replace(b"FP1", b"FP2"),
    "a checksum in capitals": b"\x1eFP1 2 ABCDEF01 {}\n",
    "a prompt": b">>> 1 + 1\r\n2\r\n>>> ",
    "a traceback": b'Traceback (most recent call last):\r\n  File "<stdin>", line 1\r\n',
    "split UTF-8": "21 °C".encode()[:-2],
    "control characters": bytes(range(0x20)).replace(b"\x1e", b""),
}


def payloads(*pieces: bytes) -> list[bytes]:
    splitter = Splitter()
    found = [part for piece in pieces for part in splitter.feed(piece)]
    return [part.json for part in found if isinstance(part, Payload)]


def text(*pieces: bytes) -> str:
    splitter = Splitter()
    found = [part for piece in pieces for part in splitter.feed(piece)]
    return "".join(part for part in found if isinstance(part, str))


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_a_frame_is_found_behind_and_between_noise(noise):
    assert payloads(noise + FRAME + noise + FRAME) == [BODY, BODY]


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_a_frame_is_found_however_it_comes_in_pieces(noise):
    line = noise + FRAME + noise
    for cut in range(len(line) + 1):
        assert payloads(line[:cut], line[cut:]) == [BODY]


def test_a_frame_is_found_that_comes_byte_by_byte():
    line = b"boot\r\n" + FRAME + b"\xff\x1eFP1" + FRAME
    assert payloads(*(line[at : at + 1] for at in range(len(line)))) == [BODY, BODY]


def test_a_frame_may_end_in_cr_lf():
    assert payloads(FRAME[:-1] + b"\r", b"\n" + FRAME) == [BODY, BODY]


def test_a_frame_in_the_middle_of_output_leaves_the_output_whole():
    output = ">>> print('21 °C')\r\n".encode()
    for cut in range(len(output)):
        assert text(output[:cut], FRAME, output[cut:]) == output.decode()


def test_bytes_that_are_no_text_are_shown_and_lose_nothing():
    assert text(b"a\xff\xfeb\x80") == "a\\xff\\xfeb\\x80"


def test_what_is_no_frame_after_all_is_text():
    bad = FRAME.replace(b"null", b"nuLL")
    assert text(b"x" + bad + b"y") == "x" + bad.decode() + "y"


def test_a_mebibyte_without_a_newline_is_not_kept():
    splitter = Splitter()
    passed_on = 0
    for _ in range(1024):
        passed_on += sum(len(part) for part in splitter.feed(b"x" * 1024))
    assert passed_on == 1024**2
    assert splitter.feed(FRAME) == [Payload(BODY)]


def test_no_more_is_held_back_than_a_frame_can_have():
    splitter = Splitter()
    splitter.feed(b"\x1eFP1 24000 00000000 ")
    for _ in range(1024):
        splitter.feed(b"x" * 1024)
    assert len(splitter._held) <= MAX_FRAME_BYTES
    assert splitter.feed(FRAME)[-1] == Payload(BODY)


def test_the_largest_frame_is_taken_and_one_byte_more_is_not():
    head = len(b"\x1eFP1 24556 00000000 ") + 1
    largest = b"x" * (MAX_FRAME_BYTES - head)
    assert payloads(framed(largest)) == [largest]
    assert payloads(framed(largest + b"x") + FRAME) == [BODY]


@given(st.lists(st.sampled_from([FRAME, *NOISE.values()]) | st.binary(max_size=40), max_size=8))
def test_nothing_is_found_that_was_not_sent(pieces):
    found = payloads(*pieces)
    assert found == [BODY] * len(found)
    assert len(found) <= b"".join(pieces).count(BODY)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_came_before_the_next_frame_is_found(before, between):
    assert payloads(before + FRAME + between + FRAME)[-1] == BODY


@pytest.mark.parametrize("one", VECTORS["deliveries"], ids=lambda one: one["name"])
def test_deliveries_are_read_as_in_the_vectors(one):
    [payload] = payloads(one["frame"].encode())
    assert frames.delivery(payload) == frames.Delivery(one["body"], one["auth"], one["id"])


def test_answers_are_framed_as_in_the_vectors():
    [one] = VECTORS["answers"]
    told = json.loads(one["json"])
    assert frames.answer(frames.Answer(**told)) == one["frame"].encode()


def test_no_answer_has_a_control_character_but_its_mark_and_its_end():
    """A 0x03 on its way to a board would interrupt what runs there."""
    body = "".join(map(chr, range(0x20))) + '"\\'
    sent = frames.answer(frames.Answer(400, body, body, body, body))
    assert sent[:1] == b"\x1e"
    assert not set(sent[1:-1]) & set(range(0x20))


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"{}", b'{"body":1}', b'{"body":"\xff"}', b'{"body":"\\ud800"}',
                b"[" * 20_000, b'{"body":"","auth":1}']
)  # fmt: skip
def test_a_frame_that_holds_no_delivery_says_so(payload):
    with pytest.raises(frames.Unreadable):
        frames.delivery(payload)


def test_lines_of_the_log_are_whole_and_bounded():
    lines = frames.Lines()
    assert lines.feed("one\r\n\r\ntw") == ["one"]
    assert lines.feed("o\n") == ["two"]
    assert lines.feed("x" * 1_000_000) == []
    [line] = lines.feed("x\nnext")
    assert line == "x" * frames.MAX_LINE_CHARACTERS + " … and 999701 characters"
    assert lines.feed("\n") == ["next"]
