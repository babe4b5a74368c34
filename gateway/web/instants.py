"""PURE: instants as a person reads them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_ms: int) -> str:
    """Return the instant as RFC 3339 has it, in UTC, to the millisecond."""
    instant = _EPOCH + timedelta(milliseconds=at_ms)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc(at_ms: int) -> str:
    """Return the instant as a person reads it, in UTC, and says so."""
    return iso(at_ms).replace("T", " ")[:19] + " UTC"


def ago(at_ms: int, now_ms: int) -> str:
    """Return how long ago that is, in the one unit that says most."""
    elapsed_s = (now_ms - at_ms) // 1000
    if elapsed_s < 0:
        return "in " + _span(-elapsed_s)
    return "now" if elapsed_s == 0 else _span(elapsed_s) + " ago"


def _span(seconds: int) -> str:
    for length, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {name}"
    return f"{seconds} s"
