"""How long each device has been silent, and how long is too long. Pure: no clock of its own.

Time is the monotonic clock's and counts from when the watcher itself saw that a device was heard,
or from its own start: neither a step of the wall clock nor a gateway that was off makes a silence.
"""

from collections import deque
from dataclasses import dataclass, field

from gateway.tables import Alarms

_GAPS_KEPT = 8  # of one device, to learn its interval from
_GAPS_NEEDED = 3
_LONGEST_LEARNED_MS = 24 * 3600 * 1000
_WORTH_KEEPING = 1.25  # a learned interval is written anew when it is off by this factor


@dataclass
class _Device:
    mark: str
    heard_ms: int
    was_heard: bool = False  # by this watcher, so that the next gap is one
    gaps_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_GAPS_KEPT))


class Silence:
    """Args: started_ms: by the monotonic clock, as all instants here."""

    def __init__(self, settings: Alarms, started_ms: int) -> None:
        self._settings = settings
        self.silent_after = settings.silent_after
        self._started_ms = started_ms
        self._is_first_look = True
        self._devices: dict[int, _Device] = {}

    def end_look(self) -> None:
        """Note that from now on a device nobody has seen before has just come."""
        self._is_first_look = False

    def pause(self, lasted_ms: int) -> None:
        """Count a time in which nobody could be heard as no time."""
        self._started_ms += lasted_ms
        for device in self._devices.values():
            device.heard_ms += lasted_ms

    def look(self, id: int, mark: str, now_ms: int) -> int:
        """Return for how long the device has been silent, in ms.

        Args:
            mark: differs when the device was heard again.
        """
        device = self._devices.get(id)
        if device is None:
            since_ms = self._started_ms if self._is_first_look else now_ms
            device = self._devices[id] = _Device(mark, since_ms, not self._is_first_look)
        elif device.mark != mark:
            if device.was_heard:
                device.gaps_ms.append(now_ms - device.heard_ms)
            device.mark, device.heard_ms, device.was_heard = mark, now_ms, True
        return now_ms - device.heard_ms

    def too_long_ms(self, name: str, period_ms: int | None, learned_ms: int | None) -> int:
        """Return after how long a device is silent.

        Args:
            period_ms: what it says that it takes between two readings.
            learned_ms: what was learned of a device that says nothing.
        """
        return self.silent_after * self._interval_ms(name, period_ms, learned_ms)

    def learned_ms(self, id: int, known_ms: int | None) -> int | None:
        """Return the interval of a device as its messages tell it, None before there are enough.

        It is the second longest of the last gaps: a pause that is usual counts, one outage does
        not. Near what is known it stays that.
        """
        gaps = sorted(self._devices[id].gaps_ms)
        if len(gaps) < _GAPS_NEEDED:
            return known_ms
        found = max(gaps[-2], 1)
        if known_ms and known_ms / _WORTH_KEEPING <= found <= known_ms * _WORTH_KEEPING:
            return known_ms
        return found

    def _interval_ms(self, name: str, period_ms: int | None, learned_ms: int | None) -> int:
        settings = self._settings
        configured_s = settings.interval_s.get(name)
        if configured_s is not None:
            return int(configured_s * 1000)
        shortest_ms, heartbeat_ms = (
            int(1000 * s) for s in (settings.shortest_interval_s, settings.heartbeat_s)
        )
        if period_ms is None and learned_ms is not None:
            return min(max(learned_ms, shortest_ms), _LONGEST_LEARNED_MS)
        # Who tells a period also sends a heartbeat when nothing else was sent for a while.
        return min(max(period_ms or heartbeat_ms, shortest_ms), heartbeat_ms)
