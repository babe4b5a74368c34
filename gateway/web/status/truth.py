"""What is true now, in numbers and in a sentence; for programs, and for people in their tongue."""

from typing import Any, NamedTuple

from gateway import __version__
from gateway.alarm_texts import Kind
from gateway.languages import Said, tongue
from gateway.store import alarms, job_pages, pages
from gateway.store.database import Database
from gateway.web.health import Health

# Alarms of these kinds have a sentence of their own; the others are counted.
_SAID_WHOLE = {Kind.QUEUE_STALLED, Kind.DEVICE_SILENT, Kind.GAP, Kind.JOB_FAILED}


class Truth(NamedTuple):
    """The status in the form that docs/protocol.md gives it, and what its headline is made of."""

    status: dict[str, Any]
    sentences: list[Said]


async def truth_of(db: Database, health: Health, now_ms: int) -> Truth:
    """Find out what is true now."""
    trouble = await health.trouble()
    counts = await pages.counts(db)
    open_alarms = [dict(row) for row in await alarms.list_open(db)]
    jobs = await job_pages.counts(db, now_ms)
    troubles = [] if trouble is None else [_said("no reading can be stored: %(detail)s",
                                                 detail=trouble.detail)]  # fmt: skip
    troubles += _troubles(counts, await alarms.count_open(db), jobs["failed"] or 0)
    sentences = troubles or _all_well(counts)
    status = {
        "ok": not troubles,
        "headline": ", ".join(map(tongue("en").say, sentences)),
        "alarms": open_alarms,
        "devices": {name: counts[name] for name in ("total", "silent")},
        "readings": {
            name: counts[name] for name in ("stored", "duplicates", "quarantined", "missing")
        },
        "jobs": jobs,
        "version": __version__,
    }
    return Truth(status, sentences)


def _troubles(counts: dict[str, int], open: dict[str, int], failed_jobs: int) -> list[Said]:
    """Return what is wrong: that of which an alarm is open, and nothing else.

    Args:
        open: how many alarms of each kind.
    """
    more = sum(count for kind, count in open.items() if kind not in _SAID_WHOLE)
    missing = max(counts["missing"], 1) if Kind.GAP in open else 0
    failed = max(failed_jobs, 1) if Kind.JOB_FAILED in open else 0
    said = [
        Said("the queue is stalled", "the queue is stalled", int(Kind.QUEUE_STALLED in open)),
        Said("%(count)s alarm is open", "%(count)s alarms are open", more),
        _silent(open.get(Kind.DEVICE_SILENT, 0), counts["total"]),
        Said("%(count)s reading is missing", "%(count)s readings are missing", missing),
        Said("%(count)s job failed", "%(count)s jobs failed", failed),
    ]
    return [one for one in said if one.count]


def _silent(silent: int, total: int) -> Said:
    if total == 1:
        return Said("1 of 1 device is silent", "1 of 1 device is silent", silent)
    return Said(
        "%(count)s of %(total)s devices is silent",
        "%(count)s of %(total)s devices are silent",
        silent,
        {"total": total},
    )


def _all_well(counts: dict[str, int]) -> list[Said]:
    total, heard = counts["total"], counts["seen"]
    if not total:
        return [_said("no device has reported yet")]
    if not heard:
        return [Said("%(count)s device registered, none has reported yet",
                     "%(count)s devices registered, none has reported yet", total)]  # fmt: skip
    said = [
        Said("%(count)s device is reporting", "%(count)s devices are reporting", heard),
    ]
    if not counts["missing"]:  # what is missing for a moment only is no trouble, nor nothing
        said.append(_said("nothing is missing"))
    if total > heard:
        said.append(Said("%(count)s never reported", "%(count)s never reported", total - heard))
    return said


def _said(text: str, **values: object) -> Said:
    return Said(text, text, 1, values)
