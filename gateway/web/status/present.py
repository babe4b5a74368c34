"""PURE: what others sent, and numbers, as a person can read it: as text, whole, no trick."""

import unicodedata
from itertools import pairwise
from urllib.parse import quote

from markupsafe import Markup

from gateway.languages import Tongue

MOST_SHOWN = 120  # characters; the whole stands in the title

_CONTROL_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
# Marks that turn the order of what stands around them (UAX #9), and what can not be encoded.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_TIED = "\u00a0"  # a space at which no line is broken
_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


def visible(text: str) -> str:
    """Return the text with a symbol for each character that nobody can see."""
    if text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    picture = _CONTROL_PICTURES.get(ord(character))
    if picture is not None:
        return chr(picture)
    if unicodedata.category(character) in _HIDDEN:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def shown(value: object, most: int = MOST_SHOWN) -> Markup:
    """Return what somebody else wrote as a piece of a page: apart from the text around it, cut."""
    text = visible(str(value))
    if len(text) <= most:
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup('<bdi title="{}">{}…</bdi>').format(text, text[: most - 1])


def in_address(value: str) -> str:
    """Return the text as one piece of a path."""
    return quote(value, safe="", errors="replace")


def number(value: float, tongue: Tongue) -> str:
    """Return a number with at most six digits that say something."""
    if value and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.6g}"
    return tongue.number(float(f"{value:.6g}") if isinstance(value, float) else value)


def size(count_bytes: float, tongue: Tongue) -> str:
    """Return so many bytes in the unit that fits."""
    for name, length in _UNITS:
        if count_bytes >= length:
            return f"{number(round(count_bytes / length, 1), tongue)}{_TIED}{name}"
    return f"{number(count_bytes, tongue)}{_TIED}B"


def span(elapsed_ms: float, tongue: Tongue) -> str:
    """Return a length of time in the one or two units that say most."""
    if elapsed_ms < 1000:
        return f"{number(round(elapsed_ms, 1 if elapsed_ms < 10 else 0), tongue)} ms"
    if elapsed_ms < 60_000:
        return f"{number(round(elapsed_ms / 1000, 1 if elapsed_ms % 1000 else 0), tongue)} s"
    for (name, length), (less, part) in pairwise(_SPANS):
        if elapsed_ms >= length:
            rest = int(elapsed_ms % length // part)
            return f"{int(elapsed_ms // length)} {name}" + (f" {rest} {less}" if rest else "")
    raise AssertionError("a minute was reached above")


def ago(at_ms: int, now_ms: int, tongue: Tongue) -> str:
    """Return how long ago that is, or how soon it will be, in the one unit that says most."""
    elapsed_ms = now_ms - at_ms
    if abs(elapsed_ms) < 1000:
        return tongue.gettext("now")
    name, length = next(one for one in _SPANS if abs(elapsed_ms) >= one[1])
    length_said = f"{abs(elapsed_ms) // length} {name}"
    if elapsed_ms < 0:
        return tongue.gettext("in %(span)s", span=length_said)
    return tongue.gettext("%(span)s ago", span=length_said)


def ranges(gaps: list[dict[str, int]]) -> str:
    """Return missing numbers as `12-14, 17`."""
    return ", ".join(
        str(one["from"]) if one["from"] == one["to"] else f"{one['from']}-{one['to']}"
        for one in gaps
    )
