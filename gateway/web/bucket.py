"""PURE: buckets of tokens: so many at once, and so many more each minute."""

from collections import OrderedDict

MOST_KEPT = 4096


class Buckets:
    """A bucket for each name, full at first. The time is given, in seconds, and never goes back.

    Args:
        at_once: how many tokens a full bucket holds.
        a_minute: how many come back in a minute.
        most_kept: names that are kept; of those beyond, the one that took nothing for longest is
            forgotten, and its bucket is full again.
    """

    def __init__(self, at_once: float, a_minute: float, most_kept: int = MOST_KEPT) -> None:
        self._size = at_once
        self._a_second = a_minute / 60
        self._most_kept = most_kept
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, at_s

    def wait_s(self, name: str, tokens: float, now_s: float) -> float:
        """Return the seconds until so many can be taken; 0.0 if they can be now. Takes nothing.

        More than a bucket holds can be taken from a full one.
        """
        missing = min(tokens, self._size) - self._level(name, now_s)
        return max(0.0, missing / self._a_second)

    def take(self, name: str, tokens: float, now_s: float) -> None:
        """Take so many, also more than there are: then the next wait is longer."""
        self._filled[name] = (self._level(name, now_s) - tokens, now_s)
        self._filled.move_to_end(name)
        if len(self._filled) > self._most_kept:
            self._filled.popitem(last=False)

    def _level(self, name: str, now_s: float) -> float:
        level, at_s = self._filled.get(name, (self._size, now_s))
        return min(self._size, level + max(0.0, now_s - at_s) * self._a_second)
