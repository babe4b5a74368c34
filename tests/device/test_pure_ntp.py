import asyncio

import clock
import ntp
import watch

_NOW_MS = 1764529200000


class Enough(Exception):
    pass


class Air:
    def __init__(self, is_up=True):
        self.is_up = is_up

    def up(self):
        return self.is_up


def _run(ask, air, ms):
    # Gives the instants at which the server was asked, and the clock.
    now, asked = [0], []

    async def sleep_ms(slept_ms):
        now[0] += slept_ms
        if now[0] > ms:
            raise Enough

    def asks(host):
        asked.append(now[0])
        return ask(host)

    one = clock.Clock(lambda: now[0], lambda a, b: a - b)
    watching = watch.Watch(one.up_ms, sleep_ms)
    loop = ntp.Ntp("ntp.example", asks, one, air, watching, lambda event, value: None)
    try:
        asyncio.run(loop.run())
    except Enough:
        return asked, one
    raise AssertionError("the loop ended")


def _no_answer(host):
    raise OSError(116)


def test_the_time_is_asked_every_hour():
    asked, one = _run(lambda host: _NOW_MS, Air(), 3 * 3600 * 1000)
    assert asked == [0, 3_600_000, 7_200_000, 10_800_000]
    assert one.state == "ntp"


def test_without_an_answer_it_is_asked_again_after_a_minute():
    asked, one = _run(_no_answer, Air(), 120_000)
    assert asked == [0, 60_000, 120_000]
    assert one.now_ms() is None


def test_nobody_is_asked_without_wifi():
    asked, _ = _run(lambda host: _NOW_MS, Air(is_up=False), 300_000)
    assert asked == []
