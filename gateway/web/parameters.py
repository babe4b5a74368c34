"""Reads the parameters of a query: what is not as it should be is refused by name."""

import re
from collections.abc import Sequence

from multidict import MultiMapping

from gateway.errors import Rejected

_MOST_DIGITS = 19


class Parameters:
    """The query of one request. Raises Rejected (400) for a name that is unknown or comes twice."""

    def __init__(self, query: MultiMapping[str], known: frozenset[str]) -> None:
        for name in query:
            if name not in known:
                there_are = ", ".join(sorted(known))
                raise Rejected(400, f"there is no parameter {name[:40]!r}; there are: {there_are}")
            if len(query.getall(name)) > 1:
                raise Rejected(400, f"parameter {name} comes twice")
        self._query = query

    def integer(self, name: str, least: int, most: int) -> int | None:
        """Return it, None when it is not given; Rejected unless least <= it <= most."""
        given = self._query.get(name)
        if given is None:
            return None
        digits = given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS
        if not digits or not least <= int(given) <= most:
            raise Rejected(400, f"parameter {name} must be a whole number from {least} to {most}")
        return int(given)

    def text(self, name: str, form: re.Pattern[str], meaning: str) -> str | None:
        """Return it, None when it is not given; Rejected unless it is in the form whole."""
        given = self._query.get(name)
        if given is not None and not form.fullmatch(given):
            raise Rejected(400, f"parameter {name} must be {meaning}")
        return given

    def one_of(self, name: str, values: Sequence[str]) -> str | None:
        """Return it, None when it is not given; Rejected unless it is one of the values."""
        given = self._query.get(name)
        if given is not None and given not in values:
            raise Rejected(400, f"parameter {name} must be one of {', '.join(values)}")
        return given
