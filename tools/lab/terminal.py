"""A finding as lines for a terminal."""

import textwrap
from collections.abc import Iterator

from tools.lab.finding import Bars, Finding, Table

WIDTH = 96
_BAR = 40


def lines(finding: Finding, number: int) -> Iterator[str]:
    """Yield the finding, line by line."""
    head = f"{number}. {finding.title}"
    yield from (head, "=" * len(head), "")
    for part in finding.parts:
        if isinstance(part, str):
            yield from textwrap.wrap(part, WIDTH)
        elif isinstance(part, Table):
            yield from _table(part)
        else:
            yield from _bars(part)
        yield ""
    for claim in finding.claims:
        yield from textwrap.wrap(
            f"[{'x' if claim.holds else ' '}] {claim.text}", WIDTH, subsequent_indent="    "
        )
    yield ""


def _table(table: Table) -> Iterator[str]:
    rows = [table.columns, *table.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    for number, row in enumerate(rows):
        yield "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        if number == 0:
            yield "  " + "  ".join("-" * width for width in widths)


def _bars(bars: Bars) -> Iterator[str]:
    yield f"  {bars.title} ({bars.unit})"
    most = max((value for values in bars.series.values() for value in values), default=0) or 1
    wide = max(len(label) for label in bars.labels)
    named = max(len(name) for name in bars.series)
    for place, label in enumerate(bars.labels):
        for name, values in bars.series.items():
            value = values[place]
            bar = "#" * round(_BAR * value / most) or ("." if value else "")
            yield f"  {label:>{wide}}  {name:<{named}}  {bar} {value:g}"
