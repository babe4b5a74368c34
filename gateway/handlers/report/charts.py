"""Charts as SVG that stands in a page: no script, nothing fetched from elsewhere."""

import sys
from xml.etree.ElementTree import Element

import pygal
from pygal.style import Style

from gateway.handlers.report.figures import CHART_POINTS, Point

# It hooks itself into every later import of the process, in a way that Python has given up, for the
# sake of maps that nobody here draws.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != pygal.__name__]

_WIDTH, _HEIGHT = 760, 240
_LABELS = 8
_MOST = 1e100
_STYLE = Style(
    background="transparent", plot_background="transparent", font_family="sans-serif",
    colors=("#9db8cf", "#0b5a94", "#9db8cf", "#0b5a94"),
)  # fmt: skip


def draw(title: str, points: list[Point], clocks: list[str]) -> str:
    """Return a chart of least, mean and most of each part of a day.

    Args:
        clocks: when each part begins, as it stands below the chart.
    """
    chart = pygal.Line(
        js=[], style=_STYLE, width=_WIDTH, height=_HEIGHT, explicit_size=True, show_dots=False,
        show_legend=False, disable_xml_declaration=True, allow_interruptions=True,
        x_labels_major_every=CHART_POINTS // _LABELS, show_minor_x_labels=False,
        truncate_label=-1,
    )  # fmt: skip
    chart.title = title
    chart.x_labels = clocks
    for name, values in zip(("least", "mean", "most"), zip(*points, strict=True), strict=True):
        chart.add(name, list(values))
    # A line of one point is not seen: what has no neighbours gets dots.
    alone = _alone([mean for _, mean, _ in points])
    if any(value is not None for value in alone):
        chart.add("alone", alone, stroke=False, show_dots=True)
    chart.add_xml_filter(_without_scripts)
    return str(chart.render(is_unicode=True))


def can_draw(points: list[Point]) -> bool:
    """Return whether the values are of a size that a scale can be made for."""
    return all(value is None or abs(value) < _MOST for point in points for value in point)


def _alone(values: list[float | None]) -> list[float | None]:
    padded = [None, *values, None]
    return [
        value if before is None and after is None else None
        for before, value, after in zip(padded, values, padded[2:], strict=False)
    ]


def _without_scripts(root: Element) -> Element:
    for parent in root.iter():
        for child in list(parent):
            if isinstance(child.tag, str) and child.tag.rpartition("}")[2] == "script":
                parent.remove(child)
    return root
