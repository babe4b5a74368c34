# PURE: which ids of this board will never arrive, as merged ranges, until the gateway has
# acknowledged them. Kept in RAM: what a reset forgets stays an open gap at the gateway,
# which is the truth as far as anybody knows it.


class Lost:
    max_ranges = 16  # so that the envelope stays small; beyond it the gap stays open too

    def __init__(self):
        self._ranges = []  # (boot, first n, last n)

    def add(self, reading_id):
        """Report this id lost; an id without a boot and an n in it explains no gap."""
        try:
            _, boot, n = reading_id.rsplit("-", 2)
            self._add(boot, int(n), int(n))
        except ValueError:
            pass

    def _add(self, boot, first, last):
        apart = []
        for other in self._ranges:
            if other[0] == boot and other[1] <= last + 1 and other[2] >= first - 1:
                first, last = min(first, other[1]), max(last, other[2])
            else:
                apart.append(other)
        if len(apart) < self.max_ranges:
            apart.append((boot, first, last))
        self._ranges = apart

    def ranges(self):
        """What to send now; give it back to `forget` once it is acknowledged."""
        return list(self._ranges)

    def forget(self, sent):
        # A range that grew meanwhile is sent again as a whole: saying it twice is harmless.
        self._ranges = [one for one in self._ranges if one not in sent]
