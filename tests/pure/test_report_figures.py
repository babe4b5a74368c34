"""The figures of a sensor's day."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.handlers.report import charts, figures
from gateway.handlers.report.figures import CHART_POINTS, Series

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def series(*values: tuple[int, float | None]) -> Series:
    made = Series("d", "s")
    for at_ms, value in values:
        made.add(at_ms, value, None, "no" if value is None else None, "Cel")
    return made


def test_first_and_last_go_by_instant_and_not_by_arrival() -> None:
    of = figures.of(series((3000, 3.0), (1000, 1.0), (2000, 8.0), (9000, None)), 0, DAY_MS)
    assert (of.count, of.min, of.mean, of.max) == (3, 1.0, 4.0, 8.0)
    assert (of.first, of.first_at_ms, of.last, of.last_at_ms) == (1.0, 1000, 3.0, 3000)
    assert (of.texts, of.errors) == (0, 1)


def test_a_gap_is_longer_than_three_of_the_usual_times() -> None:
    minute = 60_000
    steady = [(n * minute, 1.0) for n in range(24 * 60)]
    assert figures.of(series(*steady), 0, DAY_MS).gaps == 0
    without = [(at, v) for at, v in steady if not 100 * minute < at < 200 * minute]
    of = figures.of(series(*without), 0, DAY_MS)
    assert (of.silent_after_ms, of.gaps, of.silent_ms) == (3 * minute, 1, 100 * minute)
    assert figures.of(series(*without[:50]), 0, DAY_MS).silent_ms == DAY_MS - 49 * minute


def test_silence_counts_from_the_beginning_of_the_day_to_its_end() -> None:
    of = figures.of(series((6 * HOUR_MS, 1.0)), 0, DAY_MS)
    assert (of.gaps, of.silent_ms) == (2, DAY_MS)
    of = figures.of(series(), 0, DAY_MS)
    assert (of.count, of.min, of.mean, of.gaps, of.silent_ms) == (0, None, None, 1, DAY_MS)


@given(st.lists(st.tuples(st.integers(0, DAY_MS - 1),
                          st.floats(allow_nan=False, allow_infinity=False)), max_size=30),
       st.floats(-1e300, 1e300))  # fmt: skip
def test_no_value_is_too_large_for_the_figures_or_the_chart(
    values: list[tuple[int, float]], scale: float
) -> None:
    made = series(*((at, figures.calibrated(v, scale, 1.0)) for at, v in values))
    of = figures.of(made, 0, DAY_MS)
    if values:
        assert of.min <= of.mean <= of.max
    points = figures.points(made, 0, DAY_MS)
    assert len(points) == CHART_POINTS
    if values and charts.can_draw(points):
        assert charts.draw("t", points, ["0"] * CHART_POINTS).startswith("<svg")


@pytest.mark.parametrize(
    "values",
    [
        [0.1, 0.1 + 2**-56],
        [1e16, 1e16 + 2],
        [-5e-324, 5e-324],
        [1.7e99, 1.7e99 * (1 + 2**-52)],
        [0.3, 0.3, 0.3],
    ],
)
def test_a_chart_is_drawn_of_values_that_hardly_differ(values: list[float]) -> None:
    made = series(*((n * HOUR_MS // 8, value) for n, value in enumerate(values)))
    points = figures.points(made, 0, DAY_MS)
    assert charts.draw("t", points, ["0"] * CHART_POINTS).startswith("<svg")


def test_the_mean_of_the_largest_values_is_no_larger() -> None:
    most = sys.float_info.max
    of = figures.of(series(*((n, most) for n in range(7))), 0, DAY_MS)
    assert (of.min, of.mean, of.max) == (most, most, most)


def test_a_chart_has_no_script_and_escapes_its_title() -> None:
    points = figures.points(series((0, 1.0), (HOUR_MS, 2.0)), 0, DAY_MS)
    svg = charts.draw("<script>alert(1)</script>", points, ["00:00"] * CHART_POINTS)
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert "xlink:href" not in svg


def test_a_chart_has_no_line_where_there_was_no_reading() -> None:
    day = [(n * HOUR_MS // 4, 1.0 * n) for n in range(96)]

    def lines(values: list[tuple[int, float]]) -> int:
        points = figures.points(series(*values), 0, DAY_MS)
        svg = charts.draw("t", points, ["00:00"] * CHART_POINTS)
        return len(re.findall(r'<path d="[^"]+" class="line', svg))

    assert lines(day) == 3
    assert lines(day[:40] + day[60:]) == 6
