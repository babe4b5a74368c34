# The `machine` of an ESP32, as far as the firmware uses it, and `trace`, by which it tells the
# computer what happens.
# mypy: ignore-errors

import binascii
import json
import time

import host

PWRON_RESET = 1
HARD_RESET = 2
WDT_RESET = 3
DEEPSLEEP_RESET = 4
SOFT_RESET = 5

_CAUSES = {"power": PWRON_RESET, "hard": HARD_RESET, "watchdog": WDT_RESET, "soft": SOFT_RESET}


traced = host.orders["trace"] is not None  # all but the log goes there


def trace(event, value):
    """Write one line of the trace, or of the log where there is none."""
    if event == "log":
        print(value)
    elif not host.write_trace(_line(event, value)) and not host.has_console:
        print(event, value)  # a serial line is for the log, and for whoever talks with the board


def _line(event, value):
    if event == "wait":
        return b'{"wait_ms": %d, "failures": %d}\n' % value
    return (json.dumps({event: value}) + "\n").encode()


def reset():
    host.end("hard")


def soft_reset():
    host.end("soft")


def reset_cause():
    return _CAUSES[host.orders["cause"]]


def unique_id():
    return binascii.unhexlify(host.orders["mac"])


def freq(*_):
    return 160_000_000


def idle():
    time.sleep_ms(1)


class Pin:
    IN = 1
    OUT = 3
    OPEN_DRAIN = 7
    PULL_DOWN = 1
    PULL_UP = 2
    IRQ_RISING = 1
    IRQ_FALLING = 2

    _levels = {}  # noqa: RUF012 what is connected outlives the objects

    def __init__(self, id, mode=None, pull=None, *, value=None):
        self.id = id
        self.init(mode, pull, value=value)

    def init(self, mode=None, pull=None, *, value=None):
        self._out = mode == self.OUT
        self._open_level = 1 if pull == self.PULL_UP else 0  # nothing is wired to an input
        if value is not None:
            self.value(value)

    def value(self, level=None):
        if level is None:
            return self._levels.get(self.id, self._open_level)
        level = 1 if level else 0
        if self._out and self._levels.get(self.id) != level:
            self._levels[self.id] = level
            trace("led", level)  # an LED is all that a virtual board has on its pins
        return None

    __call__ = value

    def on(self):
        self.value(1)

    def off(self):
        self.value(0)

    def irq(self, handler=None, trigger=IRQ_RISING | IRQ_FALLING):
        return None  # nothing is wired, so nothing ever comes


class ADC:
    ATTN_0DB, ATTN_2_5DB, ATTN_6DB, ATTN_11DB = 0, 1, 2, 3

    # A cell that is charged and used up again, in half an hour.
    def __init__(self, pin, atten=ATTN_0DB):
        self._top_uv = (950_000, 1_250_000, 1_750_000, 2_450_000)[atten]

    def read_uv(self):
        second = time.ticks_ms() // 1000 % 1800
        return self._top_uv * (900 + abs(second - 900)) // 2000

    def read_u16(self):
        return self.read_uv() * 65535 // self._top_uv

    def read(self):
        return self.read_u16() >> 4


class RTC:
    _memory = binascii.unhexlify(host.orders["memory"])

    def datetime(self, fields=None):
        if fields is None:
            seconds, us = divmod(host.rtc_us(), 1_000_000)
            year, month, day, hour, minute, second, weekday = time.gmtime(seconds)[:7]
            return (year, month, day, weekday, hour, minute, second, us)
        year, month, day, _, hour, minute, second, us = fields
        seconds = time.mktime((year, month, day, hour, minute, second, 0, 0))
        host.set_rtc_us(seconds * 1_000_000 + us)
        return None

    def memory(self, data=None):
        if data is None:
            return RTC._memory
        if len(data) > 2048:
            raise ValueError("buffer too long")
        RTC._memory = bytes(data)
        host.say("memory", binascii.hexlify(RTC._memory).decode())
        return None


class WDT:
    # Once armed it can be given another timeout, but never be stopped.
    def __init__(self, id=0, timeout=5000):
        if timeout <= 0:
            raise ValueError("WDT timeout must be positive")
        host.say("watchdog_ms", timeout)

    def feed(self):
        host.say("fed", True)
