"""PURE: the header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header)."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gateway.errors import Rejected
from gateway.web.caller import Caller

MOST_CHARACTERS = 255

# A string or a token of RFC 9651, 3.3.3 and 3.3.4; a token may begin with a digit here.
_FORM = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])+)"|([!#$%&\'*+.^_`|~0-9A-Za-z:/-]+)')
_ESCAPED = re.compile(r"\\(.)")


class Key(NamedTuple):
    """A key, and whose: two callers may use the same one."""

    caller: str
    key: str


def scope(caller: Caller) -> str:
    """Return whose keys a caller's are."""
    return f"device {caller.device}" if caller.device else caller.kind.value


def key(values: Sequence[str]) -> str | None:
    """Return the key without its quotes, None if there is none.

    Args:
        values: of every such header.

    Raises:
        Rejected: 400, there are several, or it is malformed.
    """
    if not values:
        return None
    match = _FORM.fullmatch(values[0].strip(" \t"))
    if len(values) > 1 or match is None:
        raise Rejected(
            400, 'Idempotency-Key must be one string such as "8e03978e-40d5", or a token'
        )
    found = match[2] or _ESCAPED.sub(r"\1", match[1])
    if len(found) > MOST_CHARACTERS:
        raise Rejected(400, f"Idempotency-Key must have at most {MOST_CHARACTERS} characters")
    return found
