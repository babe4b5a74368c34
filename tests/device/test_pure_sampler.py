import asyncio
import json

import boots
import clock
import lost
import sampler
import watch

_NOW_MS = 1764529200000


class Sensor:
    # Gives its values one after the other; an exception among them is raised.
    def __init__(self, *values, channels=("s",)):
        self.channels = channels
        self._values = list(values)

    async def read(self):
        value = self._values.pop(0) if len(self._values) > 1 else self._values[0]
        if isinstance(value, Exception):
            raise value
        return [(channel, value, "Cel") for channel in self.channels]


class Hanging:
    channels = ("hangs",)

    async def read(self):
        await asyncio.sleep(60)


class Outbox:
    # Takes records; `full` is what it raises instead.
    def __init__(self):
        self.records = []
        self.full = None

    def put(self, record):
        if self.full is not None:
            raise self.full
        self.records.append(json.loads(record))
        return len(self.records)


class Board:
    def __init__(self, *sensors, period_ms=1000):
        self.ms = 0
        self.told = []
        self.outbox = Outbox()
        self.clock = clock.Clock(lambda: self.ms, lambda a, b: a - b)
        self.lost = lost.Lost()
        self.news = asyncio.Event()
        self.sampler = sampler.Sampler(
            sensors,
            self.outbox,
            boots.Ids("d", "7f3a17c212"),
            self.clock,
            self.lost,
            watch.Watch(self.clock.up_ms, self.sleep_ms),
            self.news,
            lambda event, value: self.told.append((event, value)),
            period_ms,
        )

    async def sleep_ms(self, ms):
        self.ms += ms
        if self.ms > 10_000:
            raise Enough

    def once(self):
        asyncio.run(self.sampler.run_once())
        return self.outbox.records

    def run(self):
        try:
            asyncio.run(self.sampler.run())
        except Enough:
            return self.outbox.records
        raise AssertionError("the sampler's loop ended")


class Enough(Exception):
    pass


def test_each_reading_has_an_id_and_is_told_after_it_was_put():
    board = Board(Sensor(21.5), Sensor(44.0))
    records = board.once()
    assert [one[0] for one in records] == ["d-7f3a17c212-1", "d-7f3a17c212-2"]
    assert [one[2] for one in records] == [21.5, 44.0]
    assert board.told == [("put", "d-7f3a17c212-1"), ("put", "d-7f3a17c212-2")]
    assert board.news.is_set()


def test_without_a_clock_a_reading_bears_its_uptime_and_with_one_the_time():
    board = Board(Sensor(1))
    board.ms = 70
    assert board.once()[0][4:] == [None, 70]
    board.clock.learn(_NOW_MS)
    assert board.once()[1][4:] == [_NOW_MS]


def test_a_sensor_that_raises_gives_an_error_and_the_others_go_on():
    for err in (OSError(116), ValueError("checksum"), TypeError(), KeyError("x"), MemoryError()):
        board = Board(Sensor(err, channels=("t", "h")), Sensor(5))
        records = board.once()
        assert [one[1] for one in records] == ["t", "h", "s"]
        assert [one[2] for one in records] == [None, None, 5]
        assert type(err).__name__ in records[0][6]


def test_a_sensor_that_never_answers_gives_an_error_and_the_others_go_on():
    board = Board(Hanging(), Sensor(5))
    board.sampler.sensor_s = 0.01
    records = board.once()
    assert records[0][1] == "hangs"
    assert records[0][6].startswith("no answer")
    assert records[1][2] == 5


def test_what_is_no_number_gives_an_error():
    for value in (float("nan"), float("inf"), -float("inf"), None):
        record = Board(Sensor(value)).once()[0]
        assert record[2] is None
        assert record[6], value


def test_a_text_and_a_truth_are_values_too():
    assert Board(Sensor("rain")).once()[0][7] == "rain"
    assert Board(Sensor(True)).once()[0][2] is True


def test_a_reading_that_can_not_be_kept_is_lost_and_its_number_used_up():
    for err in (OSError(28), OSError(5), MemoryError(), ValueError("too long")):
        board = Board(Sensor(1))
        board.outbox.full = err
        board.once()
        board.outbox.full = None
        assert [one[0] for one in board.once()] == ["d-7f3a17c212-2"]
        assert board.lost.ranges() == [("7f3a17c212", 1, 1)]
        assert [event for event, _ in board.told] == ["log", "put"]


def test_readings_come_at_a_fixed_rate_from_the_first_instant():
    board = Board(Sensor(1), period_ms=2500)
    assert [one[5] for one in board.run()] == [0, 2500, 5000, 7500, 10000]


def test_a_slow_reading_does_not_shift_those_after_it():
    board = Board(Sensor(1))

    class Slow:
        channels = ("slow",)

        async def read(self):
            board.ms += 300
            return [("slow", 1, None)]

    board.sampler._sensors = [Slow()]
    assert [one[5] for one in board.run()][:4] == [300, 1300, 2300, 3300]


def test_periods_that_were_missed_are_not_made_up_for():
    board = Board(Sensor(1))

    class Stuck:
        channels = ("stuck",)

        async def read(self):
            board.ms += 3200 if board.ms == 0 else 0
            return [("stuck", 1, None)]

    board.sampler._sensors = [Stuck()]
    assert [one[5] for one in board.run()][:4] == [3200, 4000, 5000, 6000]


def test_the_schedule_never_drifts():
    assert sampler.next_due(0, 0, 1000) == 1000
    assert sampler.next_due(1000, 1999, 1000) == 2000
    assert sampler.next_due(1000, 2000, 1000) == 3000
    assert sampler.next_due(1000, 900, 1000) == 2000
