import asyncio

import cable
import ways
from post import Answer


class Place:
    # A way whose other end can be made to do anything.
    def __init__(self, name, sent):
        self.name = name
        self.sent = sent
        self.is_up = True
        self.fails = False
        self.counts = True

    def up(self):
        return self.is_up

    async def exchange(self, body):
        self.sent.append(self.name)
        if self.fails:
            raise OSError("nobody")
        return Answer(200, b"", self.counts, True, None)


def _both():
    sent = []
    wire, air = Place("cable", sent), Place("wifi", sent)
    both = ways.Ways([ways.Way(wire.up, wire.exchange), ways.Way(air.up, air.exchange)])
    return wire, air, both, sent


def _try(both):
    try:
        return asyncio.run(both.exchange(None))
    except OSError:
        return None


def test_the_first_way_is_used_for_as_long_as_it_answers():
    _, _, both, sent = _both()
    for _ in range(3):
        assert _try(both).counts
    assert sent == ["cable"] * 3


def test_the_other_way_is_tried_after_one_that_did_not_answer():
    wire, air, both, sent = _both()
    wire.fails = True
    assert _try(both) is None
    assert _try(both).counts
    assert _try(both).counts
    air.fails, wire.fails = True, False
    assert _try(both) is None
    assert _try(both).counts
    assert sent == ["cable", "wifi", "wifi", "wifi", "cable"]


def test_what_does_not_count_is_no_answer():
    wire, _, both, sent = _both()
    wire.counts = False
    _try(both)
    _try(both)
    assert sent == ["cable", "wifi"]


def test_a_way_that_is_down_is_passed_over():
    _, air, both, sent = _both()
    air.is_up = False
    for _ in range(2):
        _try(both)
    air.is_up = True
    assert both.up()
    assert sent == ["cable"] * 2


def test_no_way_is_an_error_like_any_other():
    wire, air, both, sent = _both()
    wire.is_up = air.is_up = False
    assert not both.up()
    assert _try(both) is None
    assert not sent


def test_what_is_said_while_a_frame_goes_out_is_said_after_it():
    said = []
    hush = cable.Hush(lambda event, value: said.append(value), False)
    hush.tell("log", "before")
    hush.hold()
    for n in range(20):
        hush.tell("log", n)
    assert said == ["before"]
    hush.release()
    hush.tell("log", "after")
    assert said[1:9] == list(range(8))
    assert said[9:] == ["after"]


def test_on_a_cable_nothing_is_printed_that_is_only_for_a_trace():
    said = []
    quiet = cable.Hush(lambda event, value: said.append(event), False)
    quiet.tell("put", "id")
    assert said == []
    traced = cable.Hush(lambda event, value: said.append(event), True)
    traced.hold()
    traced.tell("put", "id")  # at once: a cut of power must not find it unsaid
    assert said == ["put"]
