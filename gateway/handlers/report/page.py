"""The report as a page that stands alone, and as a table."""

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from io import StringIO
from pathlib import Path

import jinja2
from markupsafe import Markup

from gateway.handlers.report import charts, figures
from gateway.handlers.report.day import Day
from gateway.handlers.report.figures import CHART_POINTS, Figures, Series

MOST_CHARTS = 200

# A text that starts like this is a formula to Excel, LibreOffice and Google Sheets (OWASP).
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass
class Line:
    """A sensor's day."""

    sensor: str
    unit: str | None
    is_calibrated: bool
    figures: Figures
    chart: Markup | None = None


@dataclass(frozen=True)
class DeviceDay:
    name: str
    missing: int
    lines: list[Line]


def line(series: Series, day: Day, now_ms: int, *, has_chart: bool) -> Line:
    """Work out the line of a sensor. A day that is not over ends now."""
    end_ms = max(day.from_ms, min(day.to_ms, now_ms), max(series.at_ms, default=0))
    worked_out = figures.of(series, day.from_ms, end_ms)
    chart = None
    points = figures.points(series, day.from_ms, day.to_ms)
    if has_chart and worked_out.count and charts.can_draw(points):
        title = f"{series.device} {series.sensor}" + (f" ({series.unit})" if series.unit else "")
        chart = Markup(charts.draw(title, points, _clocks(day)))  # pygal escapes the title
    return Line(series.sensor, series.unit, series.is_calibrated, worked_out, chart)


def html(day: Day, devices: list[DeviceDay], csv_name: str, made_ms: int, left_out: int) -> bytes:
    """Return the page. Whatever devices call themselves and their sensors is escaped."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {
        "number": lambda value: "" if value is None else f"{value:.6g}",
        "clock": lambda at_ms: "" if at_ms is None else day.clock(at_ms),
        "span": _span,
    }
    template = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    lines = [line for device in devices for line in device.lines]
    count = sum(line.figures.count + line.figures.texts + line.figures.errors for line in lines)
    return environment.from_string(template).render(
        day=day, devices=devices, csv=csv_name, made_ms=made_ms, is_over=made_ms >= day.to_ms,
        count=count, left_out=left_out, most_charts=MOST_CHARTS,
    ).encode()  # fmt: skip


def table(day: Day, devices: list[DeviceDay]) -> bytes:
    """Return the figures as CSV (RFC 4180), a line for each sensor, instants in ms."""
    text = StringIO()
    writer = csv.writer(text)
    names = [field.name for field in fields(Figures)]
    writer.writerow(["date", "time_zone", "device", "sensor", "unit", *names])
    for device in devices:
        for line in device.lines:
            told = (day.date, day.zone, device.name, line.sensor, line.unit)
            writer.writerow([_cell(value) for value in (*told, *asdict(line.figures).values())])
    return text.getvalue().encode()


def _clocks(day: Day) -> list[str]:
    step_ms = (day.to_ms - day.from_ms) / CHART_POINTS
    return [day.clock(int(day.from_ms + n * step_ms))[:5] for n in range(CHART_POINTS)]


def _span(elapsed_ms: int) -> str:
    return " ".join(_units(elapsed_ms // 1000)) or "0 s"


def _units(seconds: int) -> Iterator[str]:
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    for amount, unit in ((hours, "h"), (minutes, "min"), (seconds, "s")):
        if amount:
            yield f"{amount} {unit}"


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_STARTS_A_FORMULA):
        return "'" + value
    return value
