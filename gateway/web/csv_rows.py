"""PURE: readings as CSV (RFC 4180) that a spreadsheet can open without running anything."""

import csv
import sqlite3
from collections.abc import Iterable
from io import StringIO

COLUMNS = (
    "reading_id", "device", "sensor", "value", "text", "unit", "error", "boot", "n", "at_ms",
    "clock", "received_at_ms",
)  # fmt: skip

# A text that starts like this is a formula to Excel, LibreOffice and Google Sheets (OWASP).
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def lines(rows: Iterable[sqlite3.Row]) -> bytes:
    """Return a line for each row."""
    return _written([_cell(row[column]) for column in COLUMNS] for row in rows)


def head() -> bytes:
    """Return the line with the names of the columns."""
    return _written([COLUMNS])


def _written(rows: Iterable[Iterable[object]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_STARTS_A_FORMULA):
        return "'" + value
    return value
