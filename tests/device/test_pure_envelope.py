import clock
import envelope
import health
import lost

_NOW_MS = 1764529200000


class Report:
    def __init__(self, text):
        self.text = text

    def forget(self, sent):
        if sent == self.text:
            self.text = None


class Outbox:
    dropped = 3
    dead = 1

    def __len__(self):
        return 42


class Parts:
    def __init__(self, crash=None):
        self.ms = 0
        self.clock = clock.Clock(lambda: self.ms, lambda a, b: a - b)
        self.lost = lost.Lost()
        self.report = Report(crash)
        self.fs_asked = 0
        self.health = health.Health(
            "power", 10000, Outbox(), self.clock.up_ms, lambda: 81234, self.fs_free, lambda: -61
        )
        self.envelope = envelope.Envelope(
            "d", "7f3a17c212", self.clock, self.lost, self.report, self.health.report
        )

    def fs_free(self):
        self.fs_asked += 1
        if self.fs_asked > 2:
            raise OSError(5)
        return 1000 * self.fs_asked


def test_seq_goes_up_by_one_with_each_attempt_from_one():
    parts = Parts()
    assert [parts.envelope.next(None)["seq"] for _ in range(3)] == [1, 2, 3]


def test_uptime_and_time_are_those_of_this_attempt():
    parts = Parts()
    parts.ms = 5
    fields = parts.envelope.next(None)
    assert (fields["up_ms"], fields["sent_ms"]) == (5, None)
    parts.clock.learn(_NOW_MS)
    parts.ms = 9
    fields = parts.envelope.next(None)
    assert (fields["up_ms"], fields["sent_ms"]) == (9, _NOW_MS + 4)


def test_health_says_what_the_parts_say():
    parts = Parts()
    parts.envelope.retries = 7
    fields = parts.envelope.next(61000)
    assert fields["device"] == "d"
    assert fields["boot"] == "7f3a17c212"
    assert fields["health"] == {
        "firmware": health.FIRMWARE,
        "reset": "power",
        "period_ms": 10000,
        "heap_free": 81234,
        "fs_free": 1000,
        "rssi": -61,
        "outbox": 42,
        "oldest_ms": 61000,
        "dropped": 3,
        "dead": 1,
        "retries": 7,
        "clock": "none",
        "crash": None,
    }
    assert "lost" not in fields


def test_a_crash_and_what_was_lost_are_repeated_until_acknowledged():
    parts = Parts(crash="boom")
    parts.lost.add("d-7f3a17c212-5")
    for _ in range(2):
        fields = parts.envelope.next(None)
        assert fields["health"]["crash"] == "boom"
        assert fields["lost"] == [{"boot": "7f3a17c212", "from": 5, "to": 5}]
    parts.envelope.acknowledged()
    fields = parts.envelope.next(None)
    assert fields["health"]["crash"] is None
    assert "lost" not in fields


def test_what_was_lost_since_the_attempt_is_not_forgotten_with_it():
    parts = Parts()
    parts.envelope.next(None)
    parts.lost.add("d-7f3a17c212-5")
    parts.envelope.acknowledged()
    assert len(parts.envelope.next(None)["lost"]) == 1


def test_free_space_is_asked_once_in_five_minutes():
    parts = Parts()
    for _ in range(5):
        assert parts.envelope.next(None)["health"]["fs_free"] == 1000
    parts.ms = 300_000
    assert parts.envelope.next(None)["health"]["fs_free"] == 2000
    assert parts.fs_asked == 2


def test_a_flash_that_can_not_say_its_free_space_is_no_crash():
    parts = Parts()
    parts.fs_asked = 2
    assert parts.envelope.next(None)["health"]["fs_free"] is None


def test_age_is_known_from_a_time_or_from_the_uptime_of_this_boot():
    parts = Parts()
    parts.ms = 1000
    age_ms = parts.envelope.age_ms
    assert age_ms(None, "7f3a17c212", 400) == 600
    assert age_ms(None, "7f3a17c211", 400) is None
    assert age_ms(_NOW_MS, "7f3a17c212", None) is None
    parts.clock.learn(_NOW_MS)
    assert age_ms(_NOW_MS - 50, "7f3a17c212", None) == 50
    assert age_ms(_NOW_MS + 50, "7f3a17c212", None) == 0
    assert age_ms(None, None, None) is None
