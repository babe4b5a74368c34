"""A day of the calendar, where and when people have it."""

from itertools import pairwise

import pytest

from gateway.handlers.days import Days, instant_ms
from gateway.handlers.report.day import Day

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("date", "zone", "hours"),
    [
        ("2026-11-30", "UTC", 24),
        ("2026-03-29", "Europe/Lisbon", 23),
        ("2026-10-25", "Europe/Lisbon", 25),
        ("2018-11-04", "America/Sao_Paulo", 23),  # its clocks skipped midnight
        ("2024-04-07", "Australia/Lord_Howe", 24.5),
    ],
)
def test_a_day_has_the_hours_that_its_clocks_show(date: str, zone: str, hours: float) -> None:
    day = Day.of(date, zone)
    assert (day.to_ms - day.from_ms) / HOUR_MS == hours


@pytest.mark.parametrize("zone", ["Europe/Lisbon", "America/Sao_Paulo", "America/Havana"])
def test_each_day_begins_where_the_one_before_ended(zone: str) -> None:
    days = [Day.of(f"2018-{m:02}-{d:02}", zone) for m in (2, 3, 10, 11) for d in range(1, 29)]
    follows = [(a, b) for a, b in pairwise(days) if b.date.day == a.date.day + 1]
    assert len(follows) == 4 * 27
    assert all(a.to_ms == b.from_ms for a, b in follows)


@pytest.mark.parametrize(
    ("date", "zone", "told"),
    [
        ("2026-02-30", "UTC", "give a day from 1970 to 2099 as YYYY-MM-DD"),
        ("20261130", "UTC", "give a day from 1970 to 2099 as YYYY-MM-DD"),
        ("2026-W49-1", "UTC", "give a day from 1970 to 2099 as YYYY-MM-DD"),
        ("1969-12-31", "UTC", "give a day from 1970 to 2099 as YYYY-MM-DD"),
        ("", "UTC", "give a day from 1970 to 2099 as YYYY-MM-DD"),
        ("2026-11-30", "Europe/Lisbn", "did you mean Europe/Lisbon?"),
        ("2026-11-30", "../../etc/passwd", "give an IANA name"),
        ("2026-11-30", "/etc/localtime", "give an IANA name"),
        ("2026-11-30", "", "give an IANA name"),
        ("2026-11-30", "UTC\0", "did you mean UTC?"),
        ("2011-12-30", "Pacific/Apia", "was left out in Pacific/Apia"),
    ],
)
def test_what_does_not_exist_is_told_with_what_to_give(date: str, zone: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"date|time_zone") as refused:
        Day.of(date, zone)
    assert told in str(refused.value)


def test_every_zone_has_a_name_of_its_own_that_is_safe_in_a_file() -> None:
    from zoneinfo import available_timezones

    zones = available_timezones() - {"Factory", "localtime", "posixrules"}
    names = {Day.of("2026-11-30", zone).name for zone in zones}
    assert len(names) == len(zones) > 400
    assert not [name for name in names if "/" in name or name.startswith(".")]


def test_days_are_whole_and_both_ends_are_included() -> None:
    day_ms = 24 * HOUR_MS
    assert Days(first="1970-01-02", last="1970-01-02").bounds() == (day_ms, 2 * day_ms)
    assert Days(first=day_ms + 1, last=2 * day_ms).bounds() == (day_ms, 3 * day_ms)
    assert instant_ms("from", "1970-01-01T02:00:00+01:00") == HOUR_MS
    assert instant_ms("from", "1970-01-01T02:00:00") == 2 * HOUR_MS


@pytest.mark.parametrize(
    "given", ["1970-02-30", "now", "", "1970-13-01T00:00:00", -1, 2**53, "9" * 9]
)
def test_an_end_that_does_not_exist_is_told(given: int | str) -> None:
    with pytest.raises(ValueError, match=r"^to "):
        instant_ms("to", given)


def test_ends_that_are_exchanged_are_told() -> None:
    with pytest.raises(ValueError, match="exchange them"):
        Days(first="2026-11-30", last="2026-11-29")
