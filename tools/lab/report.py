"""Findings as one page that stands alone: SVG charts in it, no script, nothing fetched."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from gateway.handlers.report import charts
from gateway.languages import tongue
from tools.lab.finding import Bars, Finding, Table


def page(found: dict[int, Finding], language: str) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["svg"] = _svg
    environment.tests["table"] = lambda part: isinstance(part, Table)
    environment.tests["bars"] = lambda part: isinstance(part, Bars)
    template = environment.get_template("page.html")
    return template.render(found=found, language=language, _=tongue(language).gettext)


def _svg(bars: Bars) -> str:
    return charts.draw_bars(f"{bars.title} ({bars.unit})", bars.labels, bars.series)
