# The `esp32` module: a chip whose temperature goes up and down by some degrees in an hour.
# mypy: ignore-errors

import math

import host


def mcu_temperature():
    return round(_celsius())


def raw_temperature():
    return round(_celsius() * 1.8 + 32)


def _celsius():
    own = host.orders["mac"][-1]  # so that two boards do not draw the same line
    phase = int(own, 16) / 16 + host.ticks_us() % 3_600_000_000 / 3_600_000_000
    return 38 + 6 * math.sin(2 * math.pi * phase)
