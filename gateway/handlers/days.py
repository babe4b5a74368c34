"""Which days a job is about, as people and programs write them."""

from datetime import UTC, date, datetime, time
from typing import Annotated

from msgspec import Meta, Struct

from gateway.model import MAX_AT_MS, DeviceName
from gateway.store.aggregates import DAY_MS

Day = Annotated[
    int | str,
    Meta(description="a day as YYYY-MM-DD, an instant as ISO 8601, or ms of the Unix epoch"),
]


class Days(Struct, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}):
    """Whole days in UTC, both ends included. `device` null: of all devices."""

    first: Day
    last: Day
    device: DeviceName | None = None

    def __post_init__(self) -> None:
        from_ms, to_ms = self.bounds()
        if from_ms >= to_ms:
            raise ValueError(f"from {self.first} is after to {self.last}: exchange them")

    def bounds(self) -> tuple[int, int]:
        """Return where the first day begins and where the last one ends, in ms."""
        first, last = instant_ms("from", self.first), instant_ms("to", self.last)
        return first - first % DAY_MS, last - last % DAY_MS + DAY_MS


def instant_ms(name: str, given: int | str) -> int:
    """Return the instant in ms; a day stands for its beginning in UTC.

    Raises:
        ValueError: there is no such day or instant; the message says what to give.
    """
    at_ms = given if isinstance(given, int) else _read(name, given)
    if not 0 <= at_ms <= MAX_AT_MS:
        raise ValueError(f"{name} {given} is not between 1970 and 2100: give it in ms, or as a day")
    return at_ms


def _read(name: str, given: str) -> int:
    try:
        if len(given) == len("YYYY-MM-DD"):
            instant = datetime.combine(date.fromisoformat(given), time(), UTC)
        else:
            instant = datetime.fromisoformat(given)
            instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{name} {given!r} does not exist: give a day as YYYY-MM-DD, such as 2026-11-30"
        ) from None
