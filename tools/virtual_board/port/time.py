# The `time` of an ESP32: whole seconds since 2000 (or 1970), ticks that wrap at 2**30.
# mypy: ignore-errors

import host
import utime
from utime import sleep, sleep_ms, sleep_us  # noqa: F401

_EPOCH_2000_S = 946684800
_EPOCH_S = _EPOCH_2000_S if host.orders["epoch"] == 2000 else 0
_PERIOD = 1 << 30
_HALF = _PERIOD >> 1


def time():
    return host.rtc_us() // 1_000_000


def time_ns():
    return host.rtc_us() * 1000


def gmtime(seconds=None):
    return utime.gmtime((time() if seconds is None else seconds) + _EPOCH_S)[:8]


localtime = gmtime  # a board knows no time zone


def mktime(fields):
    return int(utime.mktime(tuple(fields)[:8])) - _EPOCH_S


def ticks_ms():
    return host.ticks_us() // 1000 & _PERIOD - 1


def ticks_us():
    return host.ticks_us() & _PERIOD - 1


ticks_cpu = ticks_us


def ticks_diff(end, start):
    return ((end - start + _HALF) & _PERIOD - 1) - _HALF


def ticks_add(ticks, delta):
    in_range(delta)
    return ticks + delta & _PERIOD - 1


def in_range(delta):
    """Raise as an ESP32 does when a delay is more than its ticks can tell (6.2 days)."""
    if not -_HALF <= delta < _HALF:
        raise OverflowError("ticks interval overflow")
