# What this very board is and can do. The one place for machine and the ports' differences.

import binascii
import os
import time

import clock
import machine

try:
    from machine import trace as tell  # the virtual board writes its trace so
    from machine import traced
except ImportError:
    traced = False

    def tell(event, value):
        print(event, value)


_PATIENT_MS = 3600 * 1000
_armed = False


def device_id():
    return "esp32-" + binascii.hexlify(machine.unique_id()).decode()


def reset_cause():
    """Why this boot began: a word for the health report."""
    cause = machine.reset_cause()
    for name in ("PWRON", "HARD", "WDT", "DEEPSLEEP", "SOFT"):
        if cause == getattr(machine, name + "_RESET", None):
            return {"PWRON": "power", "WDT": "watchdog"}.get(name, name.lower())
    return "unknown"


def reset():
    machine.reset()


def rtc_memory(*data):
    """Bytes that outlive a reset but not a power cut; with an argument writes them."""
    return machine.RTC().memory(*data)


def led(pin, inverted):
    """A function that lights the LED with 1, or does nothing without a pin."""
    if pin is None:
        return lambda level: None
    out = machine.Pin(pin, machine.Pin.OUT)
    return lambda level: out.value(1 - level if inverted else level)


def watchdog(timeout_ms):
    """Arm the watchdog; the function returned feeds it."""
    global _armed
    _armed = True
    return machine.WDT(timeout=timeout_ms).feed


def rtc_ms():
    """What the RTC says, in Unix ms: it may have kept the time through a reset."""
    return clock.unix_s(int(time.time()), time.gmtime) * 1000


def set_rtc(unix_ms):
    year, month, day, hour, minute, second, weekday = time.gmtime(
        clock.port_s(unix_ms // 1000, time.gmtime)
    )[:7]
    machine.RTC().datetime((year, month, day, weekday, hour, minute, second, 0))


def ntp_ms(host):
    """Unix ms from an NTP server, to the second. Blocks for about a second; raises OSError."""
    import ntptime

    ntptime.host = host
    return clock.unix_s(ntptime.time(), time.gmtime) * 1000


def entropy():
    """An integer to seed `random` with."""
    return int.from_bytes(os.urandom(4), "big")


def fs_free_bytes():
    """Free space of the flash. Walks the whole file system: not for every reading."""
    stat = os.statvfs("/")
    return stat[0] * stat[3]


def rest():
    """Somebody stopped the firmware: an armed watchdog can not be stopped, only be patient."""
    if _armed:
        machine.WDT(timeout=_PATIENT_MS)
