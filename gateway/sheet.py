"""A sheet of readings: CSV (RFC 4180) as spreadsheets and scripts write it, a line at a time. Pure.

A cell holds no line break, as no text of a reading may: so a quote that is never closed costs its
own line, and every line has a number that an editor shows.
"""

import csv
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from gateway.model import MAX_AT_MS

MAX_LINE_BYTES = 64 * 1024

_CALLED = {"reading_id": "id", "at_ms": "at"}  # in the gateway's own CSV
_READ = ("device", "sensor", "value", "text", "at", "id", "unit", "error")
_PASSED_OVER = ("boot", "n", "clock", "received_at_ms")  # those too, and all known otherwise
_CONTENTS = ("value", "text", "error")
_NEEDED = ("device", "sensor", "at")
_SEPARATORS = (",", ";")

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MS = re.compile(r"[0-9]{1,15}")
_TRUTH = {"true": True, "false": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class NoSheet(Exception):
    """The file is no sheet of readings; the message says what is wrong with its first line."""


class BadLine(Exception):
    """A line is no reading; the message says why."""


class Line(NamedTuple):
    """A reading as `POST /v1/readings` takes it, but for an id that the line does not give."""

    device: str
    reading: dict[str, Any]

    def identity(self) -> list[object]:
        """Return what two lines without id have in common that say the same."""
        said = self.reading
        content = next(said[name] for name in _CONTENTS if name in said)
        if isinstance(content, bool):
            content = float(content)  # true is 1 wherever contents are compared
        return [self.device, said["sensor"], said["at_ms"], content]


@dataclass(frozen=True)
class Sheet:
    """How the lines of a file are to be read, as its first one says."""

    separator: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, first_line: bytes) -> "Sheet":
        """Read the names of the columns. Raises NoSheet."""
        if first_line[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise NoSheet("the file is UTF-16: save it as UTF-8")
        try:
            text = first_line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise NoSheet("the first line is not UTF-8") from None
        found = [cls(one, _names(text, one)) for one in _SEPARATORS]
        best = max(found, key=lambda sheet: sum(name in _READ for name in sheet.columns))
        best._refuse_unfit()
        return best

    def read(self, line: bytes) -> Line | None:
        """Return what a line says, None if it is empty. Raises BadLine."""
        try:
            cells = _cells(line.decode().rstrip("\r\n"), self.separator)
        except UnicodeDecodeError:
            raise BadLine("it is not UTF-8") from None
        if not any(cells):
            return None
        if any(cells[len(self.columns) :]):
            raise BadLine(f"{len(cells)} cells, and the first line names {len(self.columns)}")
        return self._line({k: v for k, v in zip(self.columns, cells, strict=False) if v})

    def _line(self, said: dict[str, str]) -> Line:
        for name in _NEEDED:
            if not said.get(name, "").strip():
                raise BadLine(f"{name} is empty")
        device = said["device"].strip()
        if not _DEVICE.fullmatch(device):
            raise BadLine("device is not 1 to 64 characters of A-Z a-z 0-9 _ . -")
        reading: dict[str, Any] = {"sensor": said["sensor"].strip(), "at_ms": _at_ms(said["at"])}
        for name in ("id", "unit"):
            if name in said:
                reading[name] = said[name].strip()
        return Line(device, reading | self._content(said))

    def _content(self, said: dict[str, str]) -> dict[str, Any]:
        given = [name for name in _CONTENTS if name in said]
        if len(given) != 1:
            raise BadLine(f"{' and '.join(given) or 'neither value nor text'} is given: give one")
        if given == ["value"]:
            return {"value": self._value(said["value"].strip())}
        return {given[0]: said[given[0]]}

    def _value(self, cell: str) -> float | bool:
        if self.separator == ";" and "." not in cell:
            cell = cell.replace(",", ".", 1)
        if _NUMBER.fullmatch(cell) and math.isfinite(value := float(cell)):
            return value
        if cell.lower() in _TRUTH:
            return _TRUTH[cell.lower()]
        raise BadLine(f"value {cell[:40]!r} is not a finite number")

    def _refuse_unfit(self) -> None:
        known = set(_READ) | set(_PASSED_OVER)
        lacking = [name for name in _NEEDED if name not in self.columns]
        if not {"value", "text"} & set(self.columns):
            lacking.append("value or text")
        unknown = [name[:40] for name in self.columns if name and name not in known]
        twice = sorted({name for name in self.columns if name and self.columns.count(name) > 1})
        faults = [
            f"{what} {', '.join(names)}"
            for what, names in (("it lacks", lacking), ("unknown:", unknown), ("twice:", twice))
            if names
        ]
        if faults:
            raise NoSheet(
                "the first line must name the columns device, sensor, value or text, at, and may"
                f" name id and unit, with , or ; between them; {'; '.join(faults)}"
            )


def _names(text: str, separator: str) -> tuple[str, ...]:
    try:
        names = [cell.strip().lower() for cell in _cells(text, separator)]
    except BadLine:
        return ()  # with another separator its quotes may match
    return tuple(_CALLED.get(name, name) for name in names)


def _cells(text: str, separator: str) -> list[str]:
    if '"' not in text:
        return text.split(separator)
    try:
        return next(csv.reader((text,), delimiter=separator, strict=True))
    except csv.Error:
        raise BadLine("its quotes do not match; a cell can not hold a line break") from None


def _at_ms(cell: str) -> int:
    cell = cell.strip()
    if _MS.fullmatch(cell):
        at_ms = int(cell)
    else:
        try:
            instant = datetime.fromisoformat(cell)
        except ValueError:
            raise BadLine(f"at {cell[:40]!r} is neither ISO 8601 nor ms") from None
        if instant.tzinfo is None:
            raise BadLine(f"at {cell[:40]!r} has no offset, such as Z or +01:00")
        at_ms = (instant - _EPOCH) // _MILLISECOND
    if not 0 <= at_ms <= MAX_AT_MS:
        raise BadLine(f"at {cell[:40]!r} is not between 1970 and 2100")
    return at_ms
