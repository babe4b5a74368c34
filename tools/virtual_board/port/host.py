# What the computer gives the board: its orders, the computer's files that it may still use when
# the flash stands in their place, and the line on which the supervisor is told of things.
# mypy: ignore-errors

import json
import os
import sys

import utime
import vfs

orders = json.loads(os.getenv("VIRTUAL_BOARD_ORDERS"))

_MARK = "\x1e"  # a line for the supervisor; everything else is the board's own talk
_WHO = 63  # longest path in a message

_computer = vfs.VfsPosix()
has_console = bool(orders["switch_fd"])

# The byte in it is the character that interrupts us now; the computer looks when one comes.
_switch = open(orders["switch_fd"], "r+b") if has_console else None  # noqa: SIM115 for life
_trace = open(orders["trace"], "ab") if orders["trace"] else None  # noqa: SIM115 kept for life
_began_us = utime.ticks_us()
_rtc_zero_us = _began_us - orders["rtc_us"]
_ticks_zero_us = _began_us - orders["ticks_us"]


def say(what, value):
    """Tell the supervisor. It has heard it even if we end at once."""
    sys.stderr.write(_MARK + json.dumps({what: value}) + "\n")


def end(how):
    """End this life of the board. Never returns: the supervisor ends the process."""
    say("reset", how)
    while True:
        utime.sleep(1)


def interrupts(character):
    """Say which character from the serial line interrupts what runs; 0: none does."""
    if _switch:
        _switch.seek(0)
        _switch.write(bytes((character,)))


def write_trace(line):
    """Append one line, in one write, and return whether there is a trace at all."""
    if _trace is None:
        return False
    try:
        whole = _trace.write(line) == len(line)
        error = "a line was cut short"
    except OSError as err:
        whole, error = False, err
    if not whole:  # a trace with holes would accuse the firmware of losing readings
        say("fatal", f"trace {orders['trace'][-_WHO:]}: {error}")
        end("hard")
    return True


def link():
    """What the file says that stands for the Wi-Fi network; without a file it is up."""
    if orders["link"] is None:
        return "up"
    try:
        with _computer.open(orders["link"], "r") as file:
            return file.read(16).strip()
    except OSError:
        return ""


def link_up():
    """Whether there is a Wi-Fi network within reach."""
    return link() == "up"


def rtc_us():
    """Microseconds since the port's epoch."""
    return utime.ticks_us() - _rtc_zero_us


def set_rtc_us(us):
    global _rtc_zero_us
    _rtc_zero_us = utime.ticks_us() - us
    say("rtc_us", us)


def ticks_us():
    """Microseconds since the last reset that was not a soft one, from where the ticks start."""
    return utime.ticks_us() - _ticks_zero_us
