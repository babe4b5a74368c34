import binascii
import json

import frames

_VECTORS = __file__.rsplit("/", 2)[0] + "/vectors/frames.json"
_JSON = b'{"status":200}'


class Body:
    # In two pieces, as a wire.Body makes its own.
    def __init__(self, text):
        self._text = text

    def pieces(self):
        yield self._text[:5]
        yield self._text[5:]


def _vectors(which):
    with open(_VECTORS, "rb") as file:
        return json.load(file)[which]


def _framed(payload):
    head = f"\x1eFP1 {len(payload)} {binascii.crc32(payload) & 0xFFFFFFFF:08x} "
    return head.encode() + payload + b"\n"


def _found(*pieces):
    reader = frames.Reader()
    found = []
    for piece in pieces:
        found += [bytes(json) for json in reader.feed(piece)]
    return found


def test_deliveries_are_framed_as_in_the_vectors():
    for one in _vectors("deliveries"):
        frame = frames.Frame(one["auth"], one["id"], Body(one["body"].encode()))
        assert frame.fits
        assert b"".join(frame.pieces()) == one["frame"].encode(), one["name"]


def test_answers_are_found_as_in_the_vectors():
    for one in _vectors("answers"):
        assert _found(one["frame"].encode()) == [one["json"].encode()]


def test_a_frame_says_whether_it_is_too_large():
    # Every quote becomes two bytes.
    assert frames.Frame(None, "n", Body(b'"' * 12_000)).fits
    assert not frames.Frame(None, "n", Body(b'"' * 12_300)).fits


def test_an_answer_is_found_behind_noise_and_in_pieces():
    good = _framed(_JSON)
    for noise in (
        b"",
        b">>> \r\n",
        b"\xff" * 300,
        b"\x1e",
        b"\x1eFP1 ",
        b"\x1eFP1 0 00000000 ",
        b"\x1eFP1 99999 00000000 x",
        b"\x1eFP1 -5 00000000 x",
        b"\x1eFP1 nine 00000000 x",
        b"\x1eFP1 9 " + b"0" * 40,
        b"\x1eFP2 2 00000000 {}\n",
        good[:-9],
        good[:20],
        good.replace(b"200", b"201"),
    ):
        line = noise + good + noise
        assert _found(line) == [_JSON], noise
        for cut in range(len(line)):
            assert _found(line[:cut], line[cut:]) == [_JSON], (noise, cut)


def test_two_answers_in_one_piece_are_two():
    assert _found(_framed(_JSON) + b"\xff" + _framed(b"{}")) == [_JSON, b"{}"]
