"""Plain Python that counts readings as the aggregates should, and a database to hold against it."""

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.migrate import migrate

Calibrated = dict[str, dict[str, dict[str, float]]]


class Reading(NamedTuple):
    """`content` is a number, a text, or None for an error."""

    device: str
    sensor: str
    at_ms: int
    content: float | str | None


@dataclass
class Books:
    """A database in memory, readings in their order of arrival."""

    connection: sqlite3.Connection = field(
        default_factory=lambda: sqlite3.connect(":memory:", isolation_level=None)
    )
    readings: list[Reading] = field(default_factory=list)

    def __post_init__(self) -> None:
        migrate(self.connection)

    def arrive(self, reading: Reading) -> None:
        self.readings.append(reading)
        execute, number = self.connection.execute, len(self.readings)
        execute(
            "INSERT INTO device (name, added_at_ms) VALUES (?, 0) ON CONFLICT DO NOTHING",
            (reading.device,),
        )
        ids = "SELECT s.id, d.id FROM sensor AS s JOIN device AS d ON d.id = s.device_id"
        execute(
            "INSERT INTO sensor (device_id, name) SELECT id, ? FROM device WHERE name = ?"
            " ON CONFLICT DO NOTHING",
            (reading.sensor, reading.device),
        )
        sensor_id, device_id = execute(
            f"{ids} WHERE s.name = ? AND d.name = ?", (reading.sensor, reading.device)
        ).fetchone()
        content = reading.content
        execute(
            "INSERT INTO reading (reading_id, device_id, sensor_id, value, text, error, at_ms,"
            " clock, received_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, 'synced', 0)",
            (
                f"r{number}", device_id, sensor_id,
                content if isinstance(content, float) else None,
                content if isinstance(content, str) else None,
                "no answer" if content is None else None, reading.at_ms,
            ),
        )  # fmt: skip

    def counted(self) -> list[tuple[Any, ...]]:
        """Return the aggregates as the database has them."""
        return self.connection.execute(
            "SELECT device, sensor, span_ms, from_ms, count, texts, errors, sum, min, max,"
            " first_value, first_at_ms, last_value, last_at_ms FROM aggregates ORDER BY 1, 2, 3, 4"
        ).fetchall()

    def expected(self, calibration: Calibrated | None = None) -> list[tuple[Any, ...]]:
        return expected(self.readings, calibration or {})


def expected(readings: list[Reading], calibration: Calibrated) -> list[tuple[Any, ...]]:
    """Return the aggregates of these readings, worked out one by one."""
    pieces: dict[tuple[str, str, int, int], list[tuple[int, int, float | str | None]]] = (
        defaultdict(list)
    )
    for number, (device, sensor, at_ms, content) in enumerate(readings):
        if isinstance(content, float):
            by = calibration.get(device, {}).get(sensor, {})
            content = content * by.get("scale", 1.0) + by.get("offset", 0.0)
        for span_ms in (HOUR_MS, DAY_MS):
            piece = pieces[device, sensor, span_ms, at_ms // span_ms * span_ms]
            piece.append((at_ms, number, content))
    rows = []
    for key, piece in sorted(pieces.items()):
        texts = sum(isinstance(content, str) for _, _, content in piece)
        errors = sum(content is None for _, _, content in piece)
        numbers = sorted((at, n, c) for at, n, c in piece if isinstance(c, float))
        values = [value for _, _, value in numbers]
        if values:
            (first_at, _, first), (last_at, _, last) = numbers[0], numbers[-1]
            told = (sum(values), min(values), max(values), first, first_at, last, last_at)
        else:
            told = (None,) * 7  # type: ignore[assignment]
        rows.append((*key, len(values), texts, errors, *told))
    return rows
