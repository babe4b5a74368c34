"""The rules about each device: silent, drops reported, possible clone."""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.alarm_texts import Kind
from gateway.silence import Silence
from gateway.store import watching
from gateway.store.alarm_changes import Change, Happened, IsOver, IsTrue, Remember
from gateway.store.alarms import Open
from gateway.store.database import Database
from gateway.store.watching import Seen

_MOST_SUSPECTS = 20  # looked at closely in one look
_NONCES_KEPT = 4
_NONCE_CHARACTERS = 8  # of a boot's name; the rest is its counter


class _Before(NamedTuple):
    mark: str
    stored: int


class DeviceRules:
    """Look at every device that was ever heard; what they remember is by its key."""

    def __init__(self, silence: Silence) -> None:
        self._silence = silence
        self._before: dict[int, _Before] = {}

    async def look(
        self, db: Database, now_ms: int, wall_ms: int, open: dict[tuple[str, str], Open]
    ) -> list[Change]:
        """Return what is true of the devices, and what to remember.

        Args:
            now_ms: by the monotonic clock.
            open: the open alarms.
        """
        changes: list[Change] = []
        suspects: list[Seen] = []
        silent = {subject: a for (kind, subject), a in open.items() if kind == Kind.DEVICE_SILENT}
        async for piece in watching.devices(db):
            for seen in piece:
                changes += self._of_silence(seen, now_ms, silent.pop(seen.name, None))
                changes += self._of_news(seen)
                if self._is_suspect(seen):
                    suspects.append(seen)
        self._silence.end_look()
        changes += [IsOver(Kind.DEVICE_SILENT, name) for name in silent]  # such is no more
        return changes + await self._clones(db, wall_ms, suspects[:_MOST_SUSPECTS])

    def _of_silence(self, seen: Seen, now_ms: int, alarm: Open | None) -> list[Change]:
        silent_ms = self._silence.look(seen.id, seen.mark, now_ms)
        if alarm is not None:  # of this run or one before: it was heard since, or it was not
            return [IsOver(Kind.DEVICE_SILENT, seen.name)] if alarm.mark != seen.mark else []
        limit_ms = self._silence.too_long_ms(seen.name, seen.period_ms, seen.interval_ms)
        if silent_ms <= limit_ms:
            return []
        detail = f"not heard for {_span(silent_ms)}; a message was expected every " + _span(
            limit_ms // self._silence.silent_after
        )
        return [IsTrue(Kind.DEVICE_SILENT, seen.name, detail, seen.mark)]

    def _of_news(self, seen: Seen) -> list[Change]:
        changes: list[Change] = []
        if seen.dropped > seen.dropped_before:
            new = seen.dropped - seen.dropped_before
            detail = f"{new} readings dropped, {seen.dropped} in all, says the device"
            changes.append(Happened(Kind.DROPS_REPORTED, seen.name, detail))
        nonces = seen.nonces
        nonce = (seen.boot or "")[:_NONCE_CHARACTERS]
        if nonce and not nonces.endswith(nonce):
            past = nonces.split()
            if nonce in past:
                changes.append(_clone(seen.name, f"{past[-1]} and {nonce}"))
            nonces = " ".join([*(one for one in past if one != nonce), nonce][-_NONCES_KEPT:])
        interval_ms = seen.interval_ms
        if seen.period_ms is None:
            interval_ms = self._silence.learned_ms(seen.id, interval_ms)
        is_news = seen.dropped != seen.dropped_before or not seen.is_known
        if is_news or nonces != seen.nonces or interval_ms != seen.interval_ms:
            changes.append(Remember(seen._replace(nonces=nonces, interval_ms=interval_ms)))
        return changes

    def _is_suspect(self, seen: Seen) -> bool:
        """Return whether something of it was stored, and it was not heard: by the rules of the
        wire only its present start is, so it came from another one."""
        before = self._before.get(seen.id)
        self._before[seen.id] = _Before(seen.mark, seen.stored)
        return before is not None and seen.stored > before.stored and seen.mark == before.mark

    async def _clones(self, db: Database, wall_ms: int, suspects: list[Seen]) -> list[Change]:
        if not suspects or await watching.is_bringing_in(db, wall_ms):
            return []
        found: list[Change] = []
        for seen in suspects:
            boots = await watching.arrivals(db, seen.id)
            nonces = [boot[:_NONCE_CHARACTERS] for boot in boots]
            if comes_back(boots) or comes_back(nonces):
                found.append(_clone(seen.name, " and ".join(sorted(set(boots))[-2:])))
        return found


def comes_back(names: Iterable[str]) -> bool:
    """Return whether a name comes again after another one: A, B, A.

    One device never does so: what it takes first it sends first.
    """
    past: set[str] = set()
    present = None
    for name in names:
        if name != present:
            if name in past:
                return True
            past.add(name)
            present = name
    return False


def _clone(device: str, starts: str) -> Change:
    detail = f"messages of the starts {starts} come in turns"
    return Happened(Kind.POSSIBLE_CLONE, device, detail)


def _span(ms: int) -> str:
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
