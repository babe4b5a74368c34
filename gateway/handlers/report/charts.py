"""Charts as SVG that stands in a page: no script, nothing fetched from elsewhere."""

import sys
from xml.etree.ElementTree import Element

import pygal
from pygal.style import Style

from gateway.handlers.report.figures import Point

# It hooks itself into every later import of the process, in a way that Python has given up, for the
# sake of maps that nobody here draws.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != pygal.__name__]

_WIDTH, _HEIGHT = 760, 240
_LABELS = 8
_MOST, _LEAST = 1e100, 1e-100
_STYLE = Style(
    background="transparent", plot_background="transparent", font_family="sans-serif",
    colors=("#9db8cf", "#0b5a94", "#9db8cf", "#0b5a94"),
)  # fmt: skip


def draw(title: str, points: list[Point], clocks: list[str], css: str = "") -> str:
    """Return a chart of least, mean and most of each part of a time.

    Args:
        clocks: when each part begins, as it stands below the chart.
        css: more of it, for a chart that stands alone.
    """
    chart = pygal.Line(
        js=[], style=_STYLE, width=_WIDTH, height=_HEIGHT, explicit_size=True, show_dots=False,
        show_legend=False, disable_xml_declaration=True, allow_interruptions=True,
        x_labels_major_every=max(1, len(points) // _LABELS), show_minor_x_labels=False,
        truncate_label=-1, css=["file://style.css", "file://graph.css", f"inline:{css}"],
    )  # fmt: skip
    chart.title = title
    chart.x_labels = clocks
    least, means, most = ([_as_seen(value) for value in line] for line in zip(*points, strict=True))
    for name, values in (("least", least), ("mean", means), ("most", most)):
        chart.add(name, values)
    # A line of one point is not seen: what has no neighbours gets dots.
    alone = _alone(means)
    if any(value is not None for value in alone):
        chart.add("alone", alone, stroke=False, show_dots=True)
    chart.add_xml_filter(_without_scripts)
    return str(chart.render(is_unicode=True))


def draw_bars(title: str, labels: list[str], series: dict[str, list[float]]) -> str:
    """Return a chart of bars: one for each label and each series, with its number above it."""
    chart = pygal.Bar(
        js=[], style=_STYLE, width=_WIDTH, height=_HEIGHT + _HEIGHT // 4, explicit_size=True,
        disable_xml_declaration=True, truncate_label=-1, truncate_legend=-1, print_values=True,
        print_values_position="top", formatter=lambda value: f"{value:g}", include_x_axis=True,
        show_legend=len(series) > 1, legend_at_bottom=True,
    )  # fmt: skip
    chart.title = title
    chart.x_labels = labels
    for name, values in series.items():
        chart.add(name, [_as_seen(value) for value in values])
    chart.add_xml_filter(_without_scripts)
    return str(chart.render(is_unicode=True))


def can_draw(points: list[Point]) -> bool:
    """Return whether the values are of a size that a scale can be made for."""
    return all(value is None or abs(value) < _MOST for point in points for value in point)


def _as_seen(value: float | None) -> float | None:
    """Return what can be seen of a value: pygal looks for ever for a scale between two that differ
    in their last bits only, as a mean of equal values may differ from them.
    """
    if value is None or abs(value) < _LEAST:
        return value and 0.0
    return float(f"{value:.9g}")


def _alone(values: list[float | None]) -> list[float | None]:
    padded = [None, *values, None]
    return [
        value if before is None and after is None else None
        for before, value, after in zip(padded, values, padded[2:], strict=False)
    ]


def _without_scripts(root: Element) -> Element:
    for parent in root.iter():
        for child in list(parent):
            if isinstance(child.tag, str) and _is_for_scripts(child):
                parent.remove(child)
    return root


def _is_for_scripts(element: Element) -> bool:
    # What shows a value under the pointer is hidden by a style of its own until a script comes.
    is_tooltip = element.get("class") == "tooltip"
    return is_tooltip or element.tag.rpartition("}")[2] == "script"
