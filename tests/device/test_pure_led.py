import asyncio

import led


class Light:
    # Records (level, after so many ms); sleeping only moves its time on.
    def __init__(self):
        self.ms = 0
        self.seen = []

    def put(self, level):
        self.seen.append((level, self.ms))

    async def sleep_ms(self, ms):
        self.ms += ms
        if self.ms > 3000:
            raise Enough


class Enough(Exception):
    pass


def _led():
    light = Light()
    return light, led.Led(light.put, light.sleep_ms)


def _run(light, one):
    del light.seen[:]
    try:
        asyncio.run(one.run())
    except Enough:
        return light.seen
    raise AssertionError("the LED's loop ended")


async def _answer(body):
    return body


async def _no_answer(body):
    raise OSError("no answer")


def test_it_is_lit_while_an_exchange_is_under_way_and_at_least_50_ms():
    light, one = _led()
    assert asyncio.run(one.lit(_answer, "body")) == "body"
    assert light.seen == [(0, 0), (1, 0), (0, 50)]


def test_it_goes_dark_after_an_exchange_that_failed():
    light, one = _led()
    try:
        asyncio.run(one.lit(_no_answer, ""))
    except OSError:
        assert light.seen[-1] == (0, 50)
        return
    raise AssertionError("the failure was swallowed")


def test_two_short_blinks_say_that_it_will_be_tried_again():
    light, one = _led()
    asyncio.run(one.again())
    assert [level for level, _ in light.seen] == [0, 1, 0, 1, 0]


def test_it_stays_dark_when_all_is_well():
    light, one = _led()
    assert _run(light, one) == []


def test_it_blinks_once_a_second_without_wifi():
    light, one = _led()
    one.set("wifi", True)
    seen = _run(light, one)
    assert [at for level, at in seen if level][:3] == [0, 1000, 2000]


def test_it_blinks_fast_when_a_person_has_to_mend_something():
    for condition in ("key", "config"):
        light, one = _led()
        one.set("wifi", True)
        one.set(condition, True)
        assert [at for level, at in _run(light, one) if level][:3] == [0, 200, 400]


def test_it_is_steady_in_safe_mode():
    light, one = _led()
    one.set("safe", True)
    one.set("wifi", True)
    assert _run(light, one) == [(1, 0)]


def test_what_no_longer_holds_is_no_longer_shown():
    light, one = _led()
    one.set("wifi", True)
    one.set("wifi", False)
    one.set("never set", False)
    assert _run(light, one) == []
