"""A sheet of readings in chunks: what they bring, which lines are bad, where the next begins."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from gateway.handlers.occurrences import Occurrences
from gateway.model import MAX_READINGS
from gateway.sheet import MAX_LINE_BYTES, BadLine, Line, Sheet
from gateway.store.imports import Fault

_LINES = 64  # short transactions, as boards deliver meanwhile and wait for their end

_encode = msgspec.json.Encoder().encode
# For ids, which have to stay: how Python writes a number does not change, nor from whom it is.
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Chunk(NamedTuple):
    """Some lines of a file: the readings by device, each with its line's number.

    Attributes:
        offset_bytes: where the next chunk begins.
        line: the number of the last line of this one.
    """

    devices: dict[str, list[tuple[int, dict[str, Any]]]]
    faults: list[Fault]
    offset_bytes: int = 0
    line: int = 0

    def batches(self) -> Iterator[tuple[bytes, list[int]]]:
        """Yield bodies as `POST /v1/readings` takes them, and the numbers of their lines."""
        for device, readings in self.devices.items():
            for first in range(0, len(readings), MAX_READINGS):
                piece = readings[first : first + MAX_READINGS]
                body = {"device": device, "readings": [reading for _, reading in piece]}
                yield _encode(body), [line for line, _ in piece]


def read(
    file: BinaryIO, sheet: Sheet, occurrences: Occurrences, from_bytes: int
) -> Iterator[Chunk]:
    """Yield what stands from `from_bytes` on. What stands before is gone through and counted,
    for the ids of lines without one depend on it.

    Args:
        file: stands behind its first line.
    """
    chunk, number, begins_at = Chunk({}, []), 1, file.tell()
    while text := _next_line(file):
        number, ends_at = number + 1, file.tell()
        is_new = begins_at >= from_bytes
        try:
            found = _read(sheet, text)
            if found is not None:
                _name(found, occurrences)
                if is_new:
                    chunk.devices.setdefault(found.device, []).append((number, found.reading))
        except BadLine as error:
            if is_new:
                chunk.faults.append(Fault(number, str(error)))
        if is_new and number % _LINES == 0:
            yield chunk._replace(offset_bytes=ends_at, line=number)
            chunk = Chunk({}, [])
        begins_at = ends_at
    yield chunk._replace(offset_bytes=begins_at, line=number)


def _next_line(file: BinaryIO) -> bytes:
    """Return the next line, empty at the end; of one that is too long more than is taken."""
    line = file.readline(MAX_LINE_BYTES + 1)
    more = line if len(line) > MAX_LINE_BYTES else b"\n"
    while more and not more.endswith(b"\n"):
        more = file.readline(MAX_LINE_BYTES)
    return line


def _read(sheet: Sheet, text: bytes) -> Line | None:
    if len(text) > MAX_LINE_BYTES:
        raise BadLine(f"it is longer than {MAX_LINE_BYTES} bytes")
    return sheet.read(text)


def _name(line: Line, occurrences: Occurrences) -> None:
    """Give a line without id one, the same whenever this file or a longer one comes again."""
    if "id" in line.reading:
        return
    said = _write(line.identity()).removesuffix("]")
    times = occurrences.count(hashlib.sha256(said.encode()).digest()[:16])
    digest = hashlib.sha256(f"{said},{times}]".encode()).hexdigest()
    line.reading["id"] = f"import-{digest[:32]}"
