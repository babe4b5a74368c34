"""What happens, told to whoever watches: the log, the metrics, the page.

For watching only. What must happen is a row written in the transaction of its cause; an event may
be lost with the process, and whoever hears it can not stop what it tells of.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadingsStored:
    """A delivery was judged and committed."""

    device: str
    stored: int
    duplicates: int
    rejected: int  # all that went into quarantine, conflicts among them
    conflicting: int
    took_s: float  # from the body to the commit


@dataclass(frozen=True, slots=True)
class JobEvent:
    """A job made a move, which is committed."""

    id: int
    kind: str
    request_id: str | None


class JobAdded(JobEvent): ...


class JobClaimed(JobEvent): ...


@dataclass(frozen=True, slots=True)
class JobProgressed(JobEvent):
    progress: int  # 0..100
    stage: str | None


@dataclass(frozen=True, slots=True)
class JobFinished(JobEvent):
    work_s: float


@dataclass(frozen=True, slots=True)
class JobFailed(JobEvent):
    """A try ended badly; `is_final` says that no other follows by itself."""

    work_s: float
    error: str
    is_final: bool


class JobRetried(JobEvent):
    """A person wants it tried again."""


@dataclass(frozen=True, slots=True)
class JobRescued(JobEvent):
    """Its worker died and it was taken back; `is_final` says that it is not tried again."""

    is_final: bool


class JobInterrupted(JobEvent):
    """It was given back and no try is counted: its worker stops, or it is too early for it."""


class JobDiscarded(JobEvent): ...


@dataclass(frozen=True, slots=True)
class AlarmOpened:
    kind: str
    subject: str


@dataclass(frozen=True, slots=True)
class AlarmClosed:
    kind: str
    subject: str


Event = ReadingsStored | JobEvent | AlarmOpened | AlarmClosed
Watcher = Callable[[Event], None]


class Bus:
    """Tells each event to each watcher, at once, on the loop's thread."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` all that is published from now on; return what ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    @property
    def is_watched(self) -> bool:
        """Return whether somebody listens: if nobody does, an event need not even be made."""
        return bool(self._watchers)

    def publish(self, event: Event) -> None:
        """Tell everybody. A watcher that fails is logged, and hurts nobody else."""
        for watcher in tuple(self._watchers):
            try:
                watcher(event)
            except Exception:
                log.exception("a watcher failed at %s", type(event).__name__)
