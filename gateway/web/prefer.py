"""PURE: what of `Prefer` (RFC 7240) is honoured here: `wait`."""

import re
from collections.abc import Iterable

MOST_S = 30
_MOST_CHARACTERS = 1000  # nobody has to say more

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_ITEM = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_WAIT = re.compile(rf'({_TOKEN})(?:[ \t]*=[ \t]*("?)({_TOKEN})\2)?[ \t]*(?:;.*)?')


def wait_s(values: Iterable[str]) -> int | None:
    """Return for how many seconds the caller would wait, at most MOST_S; None: it does not say.

    Args:
        values: of every `Prefer` header. Of several preferences of one name the first counts; one
            that is malformed is as good as none (RFC 7240, 2).
    """
    for item in _ITEM.findall(",".join(values)[:_MOST_CHARACTERS]):
        match = _WAIT.fullmatch(item.strip(" \t"))
        if match is not None and match[1].lower() == "wait":
            return _seconds(match[3] or "")
    return None


def _seconds(digits: str) -> int | None:
    if not (digits.isascii() and digits.isdecimal()):
        return None
    return min(int(digits), MOST_S) if len(digits) <= 9 else MOST_S
