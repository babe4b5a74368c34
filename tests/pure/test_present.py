"""What others wrote, and numbers, as a page shows them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.languages import tongue
from gateway.store.aggregates import HOUR_MS
from gateway.web.status import present, sparkline
from gateway.web.status.series import SPANS

EN, PT = tongue("en"), tongue("pt")
NOW_MS = 1_764_529_200_000


@given(st.text())
def test_whatever_is_shown_is_text_that_everybody_sees(text: str) -> None:
    shown = str(present.shown(text, 10_000))
    assert shown.startswith("<bdi>")
    assert shown.endswith("</bdi>")
    inside = shown[5:-6]
    assert not set("<>\"'") & set(inside)
    assert all(one.isprintable() or unicodedata.category(one) == "Zs" for one in inside)
    inside.encode()


def test_marks_that_nobody_sees_are_named() -> None:
    assert present.visible("a\x00b\n\x7f") == "a␀b␊␡"
    assert present.visible("fdp\u202egpj.exe") == "fdp⟨U+202E⟩gpj.exe"
    assert present.visible("\ud800") == "⟨U+D800⟩"
    assert present.visible("água, 21 °C, 温度") == "água, 21 °C, 温度"


def test_a_long_text_is_cut_and_its_title_has_the_whole() -> None:
    long = "x" * 10_000
    shown = str(present.shown(long))
    assert f'title="{long}"' in shown
    assert shown.endswith(">" + "x" * 119 + "…</bdi>")


@pytest.mark.parametrize(
    ("value", "english", "portuguese"),
    [
        (0, "0", "0"),
        (1234567, "1,234,567", "1.234.567"),
        (21.53, "21.53", "21,53"),
        (0.000012, "1.2e-05", "1.2e-05"),
        (-1.7e300, "-1.7e+300", "-1.7e+300"),
        (20 + 1e-9, "20", "20"),
    ],
)
def test_numbers_are_written_as_the_reader_does(
    value: float, english: str, portuguese: str
) -> None:
    assert present.number(value, EN) == english
    assert present.number(value, PT) == portuguese


@pytest.mark.parametrize(
    ("elapsed_ms", "said"),
    [(0.4, "0.4 ms"), (12, "12 ms"), (1000, "1 s"), (1500, "1.5 s"), (300_000, "5 min"),
     (5_430_000, "1 h 30 min"), (90_000_000, "1 d 1 h")],
)  # fmt: skip
def test_lengths_of_time_have_units(elapsed_ms: float, said: str) -> None:
    assert present.span(elapsed_ms, EN) == said


def test_how_long_ago_is_said_in_both_directions() -> None:
    assert present.ago(NOW_MS - 61_000, NOW_MS, EN) == "1 min ago"
    assert present.ago(NOW_MS - 61_000, NOW_MS, PT) == "há 1 min"
    assert present.ago(NOW_MS + 3_600_000, NOW_MS, EN) == "in 1 h"
    assert present.ago(NOW_MS, NOW_MS, EN) == "now"


def hour(ago: int, value: float) -> dict[str, float]:
    from_ms = NOW_MS - NOW_MS % HOUR_MS - ago * HOUR_MS
    return {"from_ms": from_ms, "mean": value, "min": value - 1, "max": value + 1}


def test_a_sparkline_has_a_hole_where_nothing_came() -> None:
    spark = sparkline.of([hour(23, 1), hour(22, 2), hour(10, 3), hour(1, 2), hour(0, 1)], NOW_MS)
    assert len(spark.lines) == 2
    assert len(spark.dots) == 1
    assert (spark.least, spark.most) == (0, 4)


def test_what_is_older_than_a_day_is_not_in_a_sparkline() -> None:
    assert sparkline.of([hour(24, 1)], NOW_MS) == sparkline.Spark((), (), None, None)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=24))
def test_a_sparkline_stays_in_its_frame(values: list[float]) -> None:
    hours = [hour(len(values) - 1 - n, value) for n, value in enumerate(values)]
    spark = sparkline.of(hours, NOW_MS)
    points = [tuple(map(float, p.split(","))) for line in spark.lines for p in line.split()]
    for x, y in (*points, *spark.dots):
        assert 0 <= x <= sparkline.WIDTH
        assert 0 <= y <= sparkline.HEIGHT


@pytest.mark.parametrize("name", list(SPANS))
def test_a_chart_ends_with_the_present_part(name: str) -> None:
    span = SPANS[name]
    from_ms, to_ms = span.bounds(NOW_MS)
    assert to_ms - from_ms == span.count * span.step_ms
    assert to_ms - span.step_ms <= NOW_MS < to_ms
    row = {"from_ms": to_ms - span.step_ms, "min": 1.0, "mean": 2.0, "max": 3.0}
    assert span.points([row], NOW_MS)[-1] == (1.0, 2.0, 3.0)
    assert len(span.labels(NOW_MS)) == span.count
