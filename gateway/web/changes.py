"""What has changed, in parts of the page: gathered, numbered, and kept for those who come back.

All viewers share one bounded ring; each has nothing but the number of the last change that it was
told of. So a slow one costs no memory, and what it missed is told in one piece.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gateway.events import AlarmClosed, AlarmOpened, Event, ReadingsStored
from gateway.states import Verb
from gateway.store.moves import Move

MOST_KEPT = 256  # changes in the ring
MOST_NAMED = 64  # devices, and jobs, that one change names; then it says that all may have changed
LINGER_S = 60.0  # changes are still kept when nobody watches, for who comes back
TICK_S = 5.0

# Each change makes each viewer ask for parts. With many of them it is told less often, so that all
# of them together ask no more than this often; never more often than INTERVAL_S.
INTERVAL_S = 0.25
SHARE_S = 0.01  # for each viewer

EVERYTHING = ("headline", "devices", "jobs", "alarms", "gateway", "device:*", "job:*")
_WITH_TIME = ("headline", "gateway")  # what changes though nothing happens


class Change(NamedTuple):
    """What differs from an earlier change on up to this one."""

    number: int
    parts: tuple[str, ...]


class Changes:
    """Gathers what changes while somebody watches, and a while longer."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._run = secrets.token_hex(4)  # tells apart the numbers of two runs
        self._ring: deque[Change] = deque(maxlen=MOST_KEPT)
        self._number = 0
        self._dirty: set[str] = set()
        self._told_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._sleep_timer: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()
        self.viewers = 0
        self.is_awake = False
        self.is_over = False

    # -- what happens

    def hear(self, event: Event) -> None:
        """Note what an event changed; to be subscribed to the bus. Jobs: see `moved`."""
        if not self.is_awake:
            return
        match event:
            case ReadingsStored():
                self.mark("devices", f"device:{event.device}")
                if event.rejected:
                    self.mark("headline")
            case AlarmOpened() | AlarmClosed():
                self.mark("alarms", "headline")

    def moved(self, moves: Sequence[Move]) -> None:
        """Note what moves of jobs changed; to be subscribed to the tail."""
        if self.is_awake:
            self.mark("jobs", *(f"job:{move.job_id}" for move in moves))
            if any(move.verb != Verb.RENEW for move in moves):
                self.mark("headline")

    def mark(self, *parts: str) -> None:
        """Note that these parts changed; they are told soon, together with others."""
        if not self.is_awake:
            return
        self._dirty.update(parts)
        if self._timer is None:
            clock = asyncio.get_running_loop()
            at = max(clock.time(), self._told_at + max(self._interval_s, SHARE_S * self.viewers))
            self._timer = clock.call_at(at, self._tell)

    async def tick(self) -> None:
        """Say every few seconds that time has passed, until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            if self.viewers:
                self.mark(*_WITH_TIME)

    def close(self) -> None:
        """Let all viewers know that this is the end."""
        self.is_over = True
        self.is_awake = False
        for timer in (self._timer, self._sleep_timer):
            if timer is not None:
                timer.cancel()
        self._news.set()

    def _tell(self) -> None:
        self._timer = None
        self._told_at = asyncio.get_running_loop().time()
        self._number += 1
        self._ring.append(Change(self._number, _named(self._dirty)))
        self._dirty = set()
        news, self._news = self._news, asyncio.Event()
        news.set()

    # -- who watches

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count a viewer in and out; while there is one, changes are gathered."""
        if self._sleep_timer is not None:
            self._sleep_timer.cancel()
            self._sleep_timer = None
        self.viewers += 1
        self.is_awake = not self.is_over
        try:
            yield
        finally:
            self.viewers -= 1
            if not self.viewers and not self.is_over:
                loop = asyncio.get_running_loop()
                self._sleep_timer = loop.call_later(LINGER_S, self._sleep)

    def after(self, number: int | None) -> Change | None:
        """Return in one what changed after `number`, None if nothing did.

        None, or a number that the ring does not reach back to: all may have changed.
        """
        if number == self._number:
            return None
        newer = [change for change in self._ring if number is not None and change.number > number]
        if number is None or not newer or newer[0].number != number + 1:
            return Change(self._number, EVERYTHING)
        if len(newer) == 1:
            return newer[0]
        return Change(self._number, _named(part for change in newer for part in change.parts))

    async def news(self) -> None:
        """Wait until there is a change, or the end."""
        if not self.is_over:
            await self._news.wait()

    def id_of(self, change: Change) -> str:
        """Return the id under which a change is told."""
        return f"{self._run}-{change.number}"

    def number_of(self, id: str) -> int | None:
        """Return the number of the change that was told under that id, None if it was not here."""
        run, _, digits = id.partition("-")
        is_ours = run == self._run and digits.isascii() and digits.isdecimal() and len(digits) < 19
        return int(digits) if is_ours and int(digits) <= self._number else None

    def _sleep(self) -> None:
        """Forget: who comes back now is told that all may have changed."""
        self.is_awake = False
        self._number += 1
        self._ring.clear()
        self._dirty.clear()
        self._sleep_timer = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _named(parts: Iterable[str]) -> tuple[str, ...]:
    """Return the parts in order, those that are too many by one name for all of their sort."""
    found = set(parts)
    for sort in ("device:", "job:"):
        several = {part for part in found if part.startswith(sort)}
        if len(several) > MOST_NAMED or sort + "*" in several:
            found = found - several | {sort + "*"}
    return tuple(sorted(found))
