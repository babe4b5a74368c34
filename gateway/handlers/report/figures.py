"""PURE: what a day of one sensor comes to."""

import sys
from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum
from statistics import median

# As on the status page: silent is who missed three; oftener than this nobody is expected, and a
# board that has nothing else to say says so every five minutes.
_MISSED = 3
_SHORTEST_MS, _LONGEST_MS = 10_000, 300_000

CHART_POINTS = 96
_MOST = sys.float_info.max


@dataclass
class Series:
    """The readings of one sensor in one day, in any order. Instants in ms.

    Attributes:
        at_ms: of every reading, whatever it holds.
        numbers: (instant, calibrated value) of those that are numbers, in order of arrival.
    """

    device: str
    sensor: str
    unit: str | None = None
    texts: int = 0
    errors: int = 0
    is_calibrated: bool = False
    at_ms: "array[int]" = field(default_factory=lambda: array("q"))
    number_at_ms: "array[int]" = field(default_factory=lambda: array("q"))
    numbers: "array[float]" = field(default_factory=lambda: array("d"))

    def add(
        self, at_ms: int, value: float | None, text: str | None, error: str | None, unit: str | None
    ) -> None:
        self.at_ms.append(at_ms)
        self.texts += text is not None
        self.errors += error is not None
        self.unit = unit or self.unit
        if value is not None:
            self.number_at_ms.append(at_ms)
            self.numbers.append(value)


@dataclass(frozen=True)
class Figures:
    """A line of the report. `first` and `last` are of the numbers; None: there are none.

    Attributes:
        gaps: times without a reading that lasted longer than `silent_after_ms`.
        silent_ms: how long they were, together.
    """

    count: int
    min: float | None
    mean: float | None
    max: float | None
    first: float | None
    first_at_ms: int | None
    last: float | None
    last_at_ms: int | None
    texts: int
    errors: int
    silent_after_ms: int
    gaps: int
    silent_ms: int


def calibrated(value: float, scale: float, offset: float) -> float:
    """Return the value as charts show it; always a finite number."""
    return max(-_MOST, min(_MOST, value * scale + offset))


def of(series: Series, from_ms: int, to_ms: int) -> Figures:
    """Return the figures of a day that lasts from `from_ms` to `to_ms`, now if it is not over."""
    in_order = sorted(zip(series.number_at_ms, range(len(series.numbers)), strict=True))
    (first_at, first), (last_at, last) = (
        (in_order[0], in_order[-1]) if in_order else ((None, 0), (None, 0))
    )
    values = series.numbers
    instants = sorted(series.at_ms)
    limit_ms = silent_after_ms(instants)
    silences = [b - a for a, b in pairwise([from_ms, *instants, to_ms]) if b - a > limit_ms]
    return Figures(
        count=len(values),
        min=min(values, default=None),
        mean=_mean(values),
        max=max(values, default=None),
        first=values[first] if values else None,
        first_at_ms=first_at,
        last=values[last] if values else None,
        last_at_ms=last_at,
        texts=series.texts,
        errors=series.errors,
        silent_after_ms=limit_ms,
        gaps=len(silences),
        silent_ms=sum(silences),
    )


def silent_after_ms(instants: list[int]) -> int:
    """Return how long may pass between readings: three of the usual times between them."""
    steps = [b - a for a, b in pairwise(instants)]
    usual_ms = median(steps) if steps else _LONGEST_MS
    return int(_MISSED * min(max(usual_ms, _SHORTEST_MS), _LONGEST_MS))


Point = tuple[float | None, float | None, float | None]


def points(series: Series, from_ms: int, to_ms: int) -> list[Point]:
    """Return (min, mean, max) of each of the equal parts of the day that a chart shows."""
    parts: list[list[float]] = [[] for _ in range(CHART_POINTS)]
    for at_ms, value in zip(series.number_at_ms, series.numbers, strict=True):
        parts[(at_ms - from_ms) * CHART_POINTS // (to_ms - from_ms)].append(value)
    return [(min(p), _mean(p), max(p)) if p else (None, None, None) for p in parts]


def _mean(values: "list[float] | array[float]") -> float | None:
    """Return the mean, which lies between the least and the most; None if there are no values."""
    if not values:
        return None
    try:
        mean = fsum(values) / len(values)
    except OverflowError:  # the sum is no float
        mean = fsum(value / len(values) / 2 for value in values) * 2
    return min(max(mean, min(values)), max(values))  # rounding may carry it outside
