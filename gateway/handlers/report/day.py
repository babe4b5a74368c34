"""PURE: a day of the calendar in a time zone, as instants."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_SAFE = re.compile(r"[A-Za-z0-9_.-]+")
_NO_PLACES = {"Factory", "localtime", "posixrules"}  # what some systems list besides
_YEARS = range(1970, 2100)


@dataclass(frozen=True)
class Day:
    """A day from its first instant to the first of the next: 23, 24 or 25 hours.

    Attributes:
        zone: an IANA name.
        from_ms, to_ms: Unix epoch, UTC; `to_ms` is the first that is not of the day.
    """

    date: date
    zone: str
    from_ms: int
    to_ms: int

    @classmethod
    def of(cls, given_date: str, given_zone: str) -> "Day":
        """Return the day that a person means.

        Raises:
            ValueError: there is no such day or zone; the message says what to give.
        """
        zone, day = _zone(given_zone), _date(given_date)
        from_ms, to_ms = (_midnight_ms(each, zone) for each in (day, day + timedelta(days=1)))
        if from_ms >= to_ms:
            raise ValueError(f"date {day} was left out in {given_zone}: give the day before it")
        return cls(day, given_zone, from_ms, to_ms)

    @property
    def name(self) -> str:
        """Return the day and zone as a part of a file's name, its own for each."""
        zone = self.zone.replace("/", "-").replace("+", "plus")
        assert _SAFE.fullmatch(zone)
        return f"{self.date}-{zone}"

    def clock(self, at_ms: int) -> str:
        """Return the time of the day, as the clocks there show it."""
        return self.local(at_ms).strftime("%H:%M:%S")

    def local(self, at_ms: int) -> datetime:
        return datetime.fromtimestamp(at_ms / 1000, ZoneInfo(self.zone))


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() - _NO_PLACES)


def _zone(given: str) -> ZoneInfo:
    # Looked for in the list, not opened: a name could be a path, or another one in other capitals.
    zones = _zones()
    if given in zones:
        return ZoneInfo(given)
    near = get_close_matches(given[:64], zones, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else "give an IANA name, such as Europe/Lisbon"
    raise ValueError(f"time_zone {given[:64]!r} does not exist: {hint}")


def _date(given: str) -> date:
    try:
        found = date.fromisoformat(given)
        exact = found.isoformat() == given and found.year in _YEARS
    except ValueError:
        exact = False
    if not exact:
        raise ValueError(
            f"date {given[:64]!r} does not exist: give a day from 1970 to 2099 as YYYY-MM-DD, such"
            " as 2026-11-30"
        )
    return found


def _midnight_ms(day: date, zone: ZoneInfo) -> int:
    # Where the clocks skip midnight this is the instant of the skip; where it comes twice, the
    # first.
    return max(0, round(datetime.combine(day, time(), zone).astimezone(UTC).timestamp() * 1000))
