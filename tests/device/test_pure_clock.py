import clock

_WRAP = 1 << 30  # of the ticks on an ESP32
_NOW_S = 1764529200


class Ticks:
    def __init__(self, start=0):
        self.ms = start

    def now(self):
        return self.ms % _WRAP

    def diff(self, a, b):
        return ((a - b + _WRAP // 2) % _WRAP) - _WRAP // 2


def _gmtime_of_1970(seconds):
    return (1970, 1, 1)


def _gmtime_of_2000(seconds):
    return (2000, 1, 1)


def _clock(start=0, keep=None):
    ticks = Ticks(start)
    return ticks, clock.Clock(ticks.now, ticks.diff, keep)


def test_uptime_goes_on_where_the_ticks_wrap():
    ticks, one = _clock(start=_WRAP - 5)
    assert one.up_ms() == 0
    ticks.ms += 10
    assert one.up_ms() == 10
    for _ in range(100):  # 340 days
        ticks.ms += _WRAP // 2 - 1
        up_ms = one.up_ms()
    assert up_ms == 10 + 100 * (_WRAP // 2 - 1)


def test_nobody_knows_the_time_at_first():
    _, one = _clock()
    assert one.now_ms() is None
    assert one.state == "none"


def test_time_is_to_the_millisecond_for_a_year():
    ticks, one = _clock()
    one.learn(_NOW_S * 1000 + 7)
    for _ in range(60):
        ticks.ms += _WRAP // 2 - 1
        one.up_ms()
    assert one.now_ms() == _NOW_S * 1000 + 7 + 60 * (_WRAP // 2 - 1)
    assert one.state == "synced"


def test_time_is_corrected_forward_and_back():
    _, one = _clock()
    for seconds in (_NOW_S + 900000, _NOW_S, _NOW_S + 1):
        one.learn(seconds * 1000)
        assert one.now_ms() == seconds * 1000


def test_a_difference_that_the_network_explains_is_no_correction():
    _, one = _clock()
    one.learn(_NOW_S * 1000)
    one.learn(_NOW_S * 1000 + 200, slack_ms=200)
    assert one.now_ms() == _NOW_S * 1000
    one.learn(_NOW_S * 1000 + 201, slack_ms=200)
    assert one.now_ms() == _NOW_S * 1000 + 201


def test_the_first_time_is_taken_whatever_the_slack():
    _, one = _clock()
    one.learn(_NOW_S * 1000, slack_ms=10000)
    assert one.now_ms() == _NOW_S * 1000


def test_the_gateway_corrects_what_the_rtc_kept():
    _, one = _clock()
    one.learn(_NOW_S * 1000, clock.RTC)
    assert one.state == "rtc"
    one.learn(_NOW_S * 1000 + 5, clock.SYNCED, 1000)
    assert one.state == "synced"
    assert one.now_ms() == _NOW_S * 1000 + 5


def test_ntp_is_better_than_the_gateway_for_three_hours():
    ticks, one = _clock()
    one.learn(_NOW_S * 1000, clock.NTP)
    one.learn(_NOW_S * 1000 + 60000)
    assert one.now_ms() == _NOW_S * 1000
    ticks.ms += 3 * 3600 * 1000
    one.learn(_NOW_S * 1000)
    assert one.now_ms() == _NOW_S * 1000
    assert one.state == "synced"


def test_an_impossible_time_is_not_taken():
    _, one = _clock()
    for unix_ms in (0, 946684800000, 4102444800000, -5):
        one.learn(unix_ms)
        assert one.now_ms() is None


def test_a_new_time_is_kept_for_the_next_boot():
    kept = []
    _, one = _clock(keep=kept.append)
    one.learn(_NOW_S * 1000)
    one.learn(_NOW_S * 1000 + 1, slack_ms=5)
    assert kept == [_NOW_S * 1000]


def test_both_epochs_give_the_same_second():
    assert clock.unix_s(_NOW_S, _gmtime_of_1970) == _NOW_S
    assert clock.unix_s(_NOW_S - 946684800, _gmtime_of_2000) == _NOW_S
    for gmtime in (_gmtime_of_1970, _gmtime_of_2000):
        assert clock.unix_s(clock.port_s(_NOW_S, gmtime), gmtime) == _NOW_S


def test_a_clock_that_started_at_its_epoch_was_never_set():
    for gmtime in (_gmtime_of_1970, _gmtime_of_2000):
        assert not clock.plausible(clock.unix_s(3600, gmtime))
        assert clock.plausible(clock.unix_s(clock.port_s(_NOW_S, gmtime), gmtime))
