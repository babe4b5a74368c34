"""PURE: a day of one sensor as a line of two centimetres."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.store.aggregates import HOUR_MS
from gateway.web.status.series import Row

WIDTH, HEIGHT = 96, 20
HOURS = 24
_EDGE = 1.5  # that the line's own width is not cut off
_FLOOR, _RISE = HEIGHT - _EDGE, HEIGHT - 2 * _EDGE
_XS = [round(_EDGE + (WIDTH - 2 * _EDGE) * hour / (HOURS - 1), 1) for hour in range(HOURS)]


@dataclass(frozen=True)
class Spark:
    """A line to draw. `lines` are the points of an SVG's polylines, `dots` those that stand alone.

    The rest is of the same day; None where there was no number.
    """

    lines: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    least: float | None
    most: float | None


def of(hours: Sequence[Row], now_ms: int) -> Spark:
    """Return the line of the last 24 hours.

    Args:
        hours: from_ms, mean, min, max of each hour that has numbers, in order.
    """
    first_ms = first_hour(now_ms)
    hours = [hour for hour in hours if 0 <= hour["from_ms"] - first_ms < HOURS * HOUR_MS]
    if not hours:
        return Spark((), (), None, None)
    least, most = min(hour["min"] for hour in hours), max(hour["max"] for hour in hours)
    # Halves first: the difference of two large numbers may be none that a float holds.
    bottom, height = least / 2, most / 2 - least / 2
    runs: list[list[tuple[float, float]]] = []
    last_place = -2
    for hour in hours:
        place = (hour["from_ms"] - first_ms) // HOUR_MS
        share = (hour["mean"] / 2 - bottom) / height if height else 0.5
        if place != last_place + 1:
            runs.append([])
        runs[-1].append((_XS[place], round(_FLOOR - _RISE * min(max(share, 0.0), 1.0), 1)))
        last_place = place
    lines = tuple(" ".join(f"{x},{y}" for x, y in run) for run in runs if len(run) > 1)
    return Spark(lines, tuple(run[0] for run in runs if len(run) == 1), least, most)


def first_hour(now_ms: int) -> int:
    """Return where the first of the last 24 hours begins, the present one among them."""
    return now_ms - now_ms % HOUR_MS - (HOURS - 1) * HOUR_MS
