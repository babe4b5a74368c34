"""Which numbers of a boot have not arrived: docs/protocol.md, "Gaps". Pure.

A range is (first, last), both ends in it. The ranges of a set are disjoint.
"""

from collections.abc import Iterable

Range = tuple[int, int]


def subtract(ranges: Iterable[Range], taken: Range) -> list[Range]:
    """Return `ranges` without the numbers in `taken`; a range around it is split."""
    first, last = taken
    left: list[Range] = []
    for a, b in ranges:
        if b < first or last < a:
            left.append((a, b))
            continue
        if a < first:
            left.append((a, first - 1))
        if last < b:
            left.append((last + 1, b))
    return left


class Gaps:
    """The highest number that arrived in a boot, the open ranges below it, and those explained.

    Args:
        highest: 0 before the first.
        open: ranges below `highest` that have not arrived.
        lost: ranges that the device said will never come; they open no gap.
    """

    def __init__(
        self, highest: int, open: Iterable[Range] = (), lost: Iterable[Range] = ()
    ) -> None:
        self.highest = highest
        self.open = set(open)
        self.lost = set(lost)

    def arrive(self, n: int) -> None:
        """Note that number `n` is here, stored or in quarantine. A jump opens a range."""
        if n <= self.highest:
            self.open = set(subtract(self.open, (n, n)))
            return
        if n > self.highest + 1:
            jumped: list[Range] = [(self.highest + 1, n - 1)]
            for lost in self.lost:
                jumped = subtract(jumped, lost)
            self.open.update(jumped)
        self.highest = n

    def explain(self, lost: Range) -> None:
        """Note that the device says `lost` will never come; what is open of it is closed."""
        for known in self.lost:
            if known[0] <= lost[0] and lost[1] <= known[1]:
                return
        self.open = set(subtract(self.open, lost))
        # Kept disjoint, so that a range reported again in pieces stays what it was.
        self.lost = {*subtract(self.lost, lost), lost}

    def missing(self, n: int) -> bool:
        """Return whether `n` is in an open range."""
        return any(first <= n <= last for first, last in self.open)
