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
        self.lost = set(subtract(self.lost, (n, n)))
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
        """Note that the device says `lost` will never come; what is open of it is closed.

        What has arrived all the same stays arrived: the answer to it was lost, not the reading.
        """
        first, last = lost
        told = [(max(first, a), min(last, b)) for a, b in self.open if a <= last and first <= b]
        if last > self.highest:
            told.append((max(first, self.highest + 1), last))
        for range_ in told:
            self.open = set(subtract(self.open, range_))
            self.lost = {*subtract(self.lost, range_), range_}

    def missing(self, n: int) -> bool:
        """Return whether `n` is in an open range."""
        return any(first <= n <= last for first, last in self.open)
