"""The rules about the gateway itself and what it keeps: gaps, queue, disk, clock.

Each has `look`, which returns what it found; the instants are of the monotonic clock.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from gateway.alarm_texts import Ends, Kind, text_of
from gateway.store import watching
from gateway.store.alarm_changes import (
    Change,
    ClockStepped,
    Happened,
    IsOver,
    IsTrue,
    NoJobFailed,
)
from gateway.store.alarms import Open
from gateway.store.database import Database
from gateway.store.watching import Gapped, Progress

QUEUE = "queue"
GATEWAY = "gateway"

_MIB = 1024**2
_ENOUGH = 1.1  # of the least free space: then the alarm closes, and does not flap
_SHORTEST_STEP_MS = 1000

Opened = dict[tuple[str, str], Open]


class GapRule:
    """Readings are missing, and not only out of order."""

    def __init__(self, grace_s: float) -> None:
        self._grace_ms = int(grace_s * 1000)
        self._since: dict[int, tuple[int, int]] = {}  # boot -> its first missing number, since when

    async def look(self, db: Database, now_ms: int, open: Opened) -> list[Change]:
        gapped = await watching.gapped(db)
        changes: list[Change] = []
        since = {one.boot_id: self._of(one, now_ms) for one in gapped}
        self._since = since
        by_device: dict[str, list[Gapped]] = {}
        for one in gapped:
            by_device.setdefault(one.device, []).append(one)
        for device, boots in by_device.items():
            oldest_ms = min(since[one.boot_id][1] for one in boots)
            is_open = (Kind.GAP, device) in open
            detail = _missing(boots)
            if is_open and open[Kind.GAP, device].detail == detail:
                continue
            if is_open or now_ms - oldest_ms >= self._grace_ms:
                changes.append(IsTrue(Kind.GAP, device, detail))
        if len(gapped) < watching.MOST_GAPPED - 1:  # else those that are not here may be beyond
            changes += _over(Kind.GAP, open, by_device)
        return changes

    def _of(self, one: Gapped, now_ms: int) -> tuple[int, int]:
        first = one.ranges[0][0]
        known = self._since.get(one.boot_id)
        return known if known is not None and known[0] == first else (first, now_ms)


class QueueRule:
    """Jobs are due, and nothing gets on. How many are due says nothing."""

    def __init__(self, stalled_after_s: float) -> None:
        self._stalled_after_ms = int(stalled_after_s * 1000)
        self._progress: Progress | None = None
        self._since_ms = 0

    async def look(self, db: Database, now_ms: int, wall_ms: int, open: Opened) -> list[Change]:
        due_ms = await watching.oldest_due_ms(db, wall_ms)
        progress = await watching.progress(db)
        if due_ms is None or progress != self._progress:
            self._since_ms = now_ms
        self._progress = progress
        stalled_ms = now_ms - self._since_ms
        is_open = (Kind.QUEUE_STALLED, QUEUE) in open
        if stalled_ms < self._stalled_after_ms:
            # An alarm of before a restart stays until something gets on.
            is_over = due_ms is None or (is_open and self._has_moved(progress, open))
            return [IsOver(Kind.QUEUE_STALLED, QUEUE)] if is_open and is_over else []
        if is_open:
            return []
        detail = f"jobs are due, and none has ended for {stalled_ms // 1000} s"
        return [IsTrue(Kind.QUEUE_STALLED, QUEUE, detail, _mark(progress))]

    @staticmethod
    def _has_moved(progress: Progress, open: Opened) -> bool:
        return open[Kind.QUEUE_STALLED, QUEUE].mark != _mark(progress)


class DiskRule:
    """There is little room on the disk of the database."""

    def __init__(
        self, folder: Path | None, least_bytes: int, free_bytes: Callable[[Path], int]
    ) -> None:
        self._folder = folder
        self._least_bytes = least_bytes
        self._free_bytes = free_bytes

    def look(self, open: Opened) -> list[Change]:
        if self._folder is None:
            return []
        try:
            free = self._free_bytes(self._folder)
        except OSError:
            return []  # readings are put off, and the headline says why
        is_open = (Kind.DISK_LOW, GATEWAY) in open
        if free < self._least_bytes and not is_open:
            detail = f"{free // _MIB} MiB are free on the disk of {self._folder}"
            return [IsTrue(Kind.DISK_LOW, GATEWAY, detail)]
        if is_open and free >= self._least_bytes * _ENOUGH:
            return [IsOver(Kind.DISK_LOW, GATEWAY)]
        return []


class ClockRule:
    """The wall clock was stepped against the machine's own."""

    def __init__(self, step_s: float) -> None:
        self._alarming_ms = int(step_s * 1000)
        self._offset_ms: int | None = None

    def look(self, offset_ms: int) -> list[Change]:
        before_ms, self._offset_ms = self._offset_ms, offset_ms
        step_ms = 0 if before_ms is None else offset_ms - before_ms
        if abs(step_ms) < _SHORTEST_STEP_MS:
            return []
        changes: list[Change] = [ClockStepped(step_ms)]
        if abs(step_ms) >= self._alarming_ms:
            way = "forward" if step_ms > 0 else "back"
            detail = f"the clock went {way} by {abs(step_ms) / 1000:.0f} s"
            changes.append(Happened(Kind.CLOCK_STEPPED, GATEWAY, detail))
        return changes


def quiet(open: Iterable[Open], wall_ms: int, quiet_h: float) -> list[Change]:
    """Return the end of those events that did not happen again for so many hours."""
    before_ms = wall_ms - int(quiet_h * 3_600_000)
    return [
        IsOver(one.kind, one.subject)
        for one in open
        if text_of(one.kind).ends is Ends.QUIET
        and (one.last_at_ms if one.last_at_ms is not None else one.opened_at_ms) <= before_ms
    ]


async def failed_jobs(db: Database, open: Opened) -> list[Change]:
    """Return the end of the alarms of jobs that are failed no more, whoever took them away."""
    kinds = [subject for kind, subject in open if kind == Kind.JOB_FAILED]
    if not kinds or len(await watching.failed_kinds(db, kinds)) == len(kinds):
        return []
    return [NoJobFailed()]


def _over(kind: Kind, open: Opened, still: Iterable[str]) -> list[Change]:
    subjects = set(still)
    return [IsOver(kind, s) for k, s in open if k == kind and s not in subjects]


def _missing(boots: list[Gapped]) -> str:
    """Say what is missing: `5 readings are missing: 12-14, 20 of 7f3a17c212`."""
    count = sum(one.missing for one in boots)
    said = [
        ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in one.ranges) + f" of {one.boot}"
        for one in boots[-2:]
    ]
    verb = "reading is" if count == 1 else "readings are"
    return f"{count} {verb} missing: {'; '.join(said)}"


def _mark(progress: Progress) -> str:
    return f"{progress.ended} {progress.done}"
