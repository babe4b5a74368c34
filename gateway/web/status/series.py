"""PURE: the aggregates of a sensor over a day, a week or a month, with holes where none are."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from gateway.store.aggregates import DAY_MS, HOUR_MS


class Row(Protocol):
    """A row of aggregates: from_ms, min, mean, max and others."""

    def __getitem__(self, name: str, /) -> Any: ...


Point = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class Span:
    """How much a chart shows: `count` parts of `step_ms`, the present one last."""

    name: str
    step_ms: int
    count: int
    clock: str  # how the beginning of a part is written, as strftime has it

    def bounds(self, now_ms: int) -> tuple[int, int]:
        """Return where the first part begins and the last one ends, in ms."""
        to_ms = now_ms - now_ms % self.step_ms + self.step_ms
        return to_ms - self.count * self.step_ms, to_ms

    def labels(self, now_ms: int) -> list[str]:
        """Return when each part begins, in UTC."""
        from_ms, _ = self.bounds(now_ms)
        return [self._label(from_ms + n * self.step_ms) for n in range(self.count)]

    def points(self, rows: Iterable[Row], now_ms: int) -> list[Point]:
        """Return (min, mean, max) of each part; Nones where there is no number."""
        from_ms, _ = self.bounds(now_ms)
        points: list[Point] = [(None, None, None)] * self.count
        for row in rows:
            place = int(row["from_ms"] - from_ms) // self.step_ms
            if 0 <= place < self.count:
                points[place] = (row["min"], row["mean"], row["max"])
        return points

    def _label(self, at_ms: int) -> str:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime(self.clock)


SPANS = {
    one.name: one
    for one in (
        Span("day", HOUR_MS, 24, "%H:%M"),
        Span("week", HOUR_MS, 7 * 24, "%d.%m. %H:%M"),
        Span("month", DAY_MS, 31, "%d.%m."),
    )
}
