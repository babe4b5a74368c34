import asyncio

import watch


class Time:
    # Sleeping moves it on; after `end_ms` the test is over.
    def __init__(self, end_ms=1 << 62):
        self.ms = 0
        self.end_ms = end_ms
        self.slept = []

    def up_ms(self):
        return self.ms

    async def sleep_ms(self, ms):
        self.slept.append(ms)
        self.ms += ms
        if self.ms > self.end_ms:
            raise Enough


class Enough(Exception):
    pass


def _guard(time, one):
    fed, told = [], []
    try:
        asyncio.run(one.run(lambda ms: lambda: fed.append(time.ms), 60_000, told.append))
    except Enough:
        return fed, told
    raise AssertionError("the loop ended, and with it the watch")


def test_the_watchdog_is_fed_while_nobody_is_overdue():
    time = Time(end_ms=100_000)
    one = watch.Watch(time.up_ms, time.sleep_ms)
    one.back_in("uplink", 500_000)
    fed, told = _guard(time, one)
    assert fed == [20000, 40000, 60000, 80000, 100000]
    assert told == []


def test_a_loop_that_does_not_come_back_ends_the_feeding_and_is_named():
    time = Time(end_ms=1_000_000)
    one = watch.Watch(time.up_ms, time.sleep_ms)
    one.back_in("sampler", 500_000)
    one.back_in("uplink", 25_000)
    fed, told = _guard(time, one)
    assert told == ["uplink"]
    assert fed[-1] <= 25_000 + 30_000 < fed[-1] + 20_000


def test_the_watchdog_is_armed_only_after_time_for_a_person():
    time = Time(end_ms=50_000)
    armed = []
    one = watch.Watch(time.up_ms, time.sleep_ms)

    def arm(timeout_ms):
        armed.append((time.ms, timeout_ms))
        return lambda: None

    try:
        asyncio.run(one.run(arm, 60_000, None))
    except Enough:
        assert armed == [(20_000, 60_000)]


def test_a_new_deadline_takes_the_place_of_the_old_one():
    time = Time()
    one = watch.Watch(time.up_ms, time.sleep_ms)
    one.back_in("uplink", 1000)
    time.ms = 30_000
    one.back_in("uplink", 1000)
    time.ms = 60_000
    assert one.overdue() is None
    time.ms = 61_001
    assert one.overdue() == "uplink"


def test_a_long_sleep_is_taken_in_slices_of_at_most_an_hour():
    time = Time()
    one = watch.Watch(time.up_ms, time.sleep_ms)
    asyncio.run(one.sleep("sampler", 7 * 24 * 3600 * 1000 + 5))
    assert max(time.slept) == 3600 * 1000
    assert time.ms == 7 * 24 * 3600 * 1000 + 5


def test_a_sleeping_loop_is_not_overdue():
    time = Time()

    async def sleep_ms(ms):
        time.ms += ms
        assert one.overdue() is None

    one = watch.Watch(time.up_ms, sleep_ms)
    asyncio.run(one.sleep("sampler", 10 * 3600 * 1000))
    assert time.ms == 10 * 3600 * 1000


def test_a_sleep_that_is_over_already_still_lets_the_others_run():
    time = Time()
    one = watch.Watch(time.up_ms, time.sleep_ms)
    asyncio.run(one.sleep("sampler", 0))
    assert time.slept == [0]
