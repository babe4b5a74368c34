"""The parts of the page and what each shows. One is read anew when an event says it changed."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from gateway.config import MEMORY, Config
from gateway.kinds import Kinds
from gateway.store import device_pages, facts, job_pages
from gateway.store.database import Database
from gateway.store.device_pages import Device
from gateway.web.health import Health
from gateway.web.status import alarms, jobs, sparkline
from gateway.web.status.fresh import Fresh
from gateway.web.status.recent import Recent
from gateway.web.status.series import SPANS
from gateway.web.status.truth import truth_of

A_PAGE = 50  # devices
MOST_SENSORS = 24  # on the page of one device
_MOST_READINGS = 20
_MOST_QUARANTINED = 20

# What a process may know of itself; what it does not is None.
FIGURES = (
    "uptime_s", "commits_per_s", "batch_size", "loop_lag_ms", "ingest_p99_ms", "last_backup_ms",
)  # fmt: skip

Context = dict[str, Any]
Snapshot = Callable[[], dict[str, Any]]


class Parts:
    """Reads what each part shows."""

    def __init__(
        self,
        db: Database,
        config: Config,
        health: Health,
        kinds: Kinds,
        recent: Recent,
        snapshot: Snapshot,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._config = config
        self._health = health
        self._kinds = kinds
        self._recent = recent
        self._snapshot = snapshot
        self._now_ms = now_ms
        self._rule = device_pages.rule_of_intervals(config.alarms)
        self._fresh = Fresh(0.2, monotonic)
        self._slow = Fresh(2.0, monotonic)  # figures of a whole hour

    def forget(self) -> None:
        """Read anew for who comes now: somebody just did something and looks for it."""
        self._fresh.forget()
        self._slow.forget()

    async def shared(self, key: object, make: Callable[[], Awaitable[str]]) -> str:
        """Return what `make` made for this key a moment ago, or call it."""
        made: str = await self._fresh.get(key, make)
        return made

    async def job(self, job_id: int) -> Context | None:
        """Return a job and its whole life, None if there is no such job."""
        row = await job_pages.whole(self._db, job_id)
        if row is None:
            return None
        return {
            "job": jobs.told(row, self._now_ms()),
            "events": await job_pages.events(self._db, job_id),
        }

    async def device(self, name: str, span_name: str) -> Context | None:
        """Return all about a device, None if there is none of that name."""
        now_ms, span = self._now_ms(), SPANS[span_name]
        from_ms = sparkline.first_hour(now_ms)
        found = await device_pages.one(self._db, self._rule, name, MOST_SENSORS, from_ms)
        if found is None:
            return None
        device = self._told(found, now_ms)
        series = [device_pages.Sensor(one.id, one.name) for one in found.sensors]
        await device_pages.spans(self._db, series, span.step_ms, *span.bounds(now_ms))
        return {
            "device": device,
            "span_shown": span,
            "spans": list(SPANS),
            "series": series,
            "readings": await device_pages.newest_readings(
                self._db, found.row["id"], _MOST_READINGS
            ),
            "quarantined": await device_pages.quarantined(self._db, name, _MOST_QUARANTINED),
            "now_ms": now_ms,
        }

    async def headline(self) -> Context:
        now_ms = self._now_ms()
        truth = await truth_of(self._db, self._health, now_ms)
        return {
            "status": truth.status,
            "sentences": truth.sentences,
            "as_of_ms": now_ms,
        }

    async def alarms(self) -> Context:
        return {"alarms": await alarms.shown(self._db)}

    async def devices(self, page: int) -> Context:
        now_ms = self._now_ms()
        from_ms = sparkline.first_hour(now_ms)
        offset = (page - 1) * A_PAGE
        found = await device_pages.listed(self._db, self._rule, A_PAGE + 1, offset, from_ms)
        return {
            "devices": [self._told(one, now_ms) for one in found[:A_PAGE]],
            "page": page,
            "has_more": len(found) > A_PAGE,
            "counted_since_ms": max(self._recent.since_ms, now_ms - jobs.HOUR_MS),
        }

    def _told(self, device: Device, now_ms: int) -> Context:
        row = device.row
        return {
            **dict(row),
            "health": msgspec.json.decode(row["health"]) if row["health"] else {},
            "boots": device.boots,
            "gaps": device.gaps,
            "missing": device.missing,
            "lost": device.lost,
            "duplicates_hour": self._recent.duplicates(row["name"]),
            "sensors": [
                {"sensor": one, "spark": sparkline.of(one.spans, now_ms),
                 "last": one.spans[-1] if one.spans else None}
                for one in device.sensors
            ],
        }  # fmt: skip

    async def jobs(self) -> Context:
        now_ms = self._now_ms()
        return {
            "counts": await job_pages.counts(self._db, now_ms),
            "hour": await self._slow.get("hour", lambda: jobs.hour(self._db, now_ms)),
            "times": await self._slow.get(
                "times", lambda: jobs.times(self._db, self._kinds, now_ms)
            ),
            "jobs": await jobs.in_short(self._db, now_ms),
            "workers": self._config.workers,
        }

    async def gateway(self) -> Context:
        sizes = await asyncio.to_thread(_sizes, self._config)
        backup = await facts.get(self._db, facts.LAST_BACKUP)
        last = {"last_backup_ms": backup and backup.at_ms}
        return {"gateway": dict.fromkeys(FIGURES) | self._snapshot() | sizes | last}


def _sizes(config: Config) -> dict[str, int | None]:
    if config.db == MEMORY:
        return {"database_bytes": None, "wal_bytes": None, "free_bytes": None}
    path = Path(config.db)
    return {
        "database_bytes": _size(path),
        "wal_bytes": _size(path.with_name(path.name + "-wal")),
        "free_bytes": _free(path.parent),
    }


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
