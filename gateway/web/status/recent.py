"""How often each device sent again what was stored, in the last hour; counted as it happens.

It is for watching only, so it stands in memory and begins anew with the process.
"""

from collections import Counter, deque
from collections.abc import Callable

from gateway.events import Event, ReadingsStored

HOUR_MS = 3_600_000
_STEP_MS = 60_000


class Recent:
    """Give `hear` to the bus. One counter a minute, each of the devices that were heard in it."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._minutes: deque[tuple[int, Counter[str]]] = deque()
        self._total: Counter[str] = Counter()
        self.since_ms = now_ms()

    def hear(self, event: Event) -> None:
        """Count an event's duplicates."""
        if not isinstance(event, ReadingsStored) or not event.duplicates:
            return
        minute = self._now_ms() // _STEP_MS
        self._forget()
        if not self._minutes or self._minutes[-1][0] != minute:
            self._minutes.append((minute, Counter()))
        self._minutes[-1][1][event.device] += event.duplicates
        self._total[event.device] += event.duplicates

    def duplicates(self, device: str) -> int:
        """Return how many of its readings were here already, in the last hour."""
        self._forget()
        return self._total[device]

    def _forget(self) -> None:
        oldest = (self._now_ms() - HOUR_MS) // _STEP_MS
        while self._minutes and self._minutes[0][0] <= oldest:
            self._total -= self._minutes.popleft()[1]
