"""Files that jobs made or were to read, when the job is no more."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from gateway.handlers import daily_report, import_readings
from gateway.store import retention
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.database import Database

log = logging.getLogger(__name__)

_ARRIVING_MS = DAY_MS  # a file whose job may be yet to come


async def remove(database: Database, folder: Path, reports_days: float, now_ms: int) -> int:
    """Remove what no job needs or shows any more; return how many files.

    A report is as old as the job that wrote it: it goes when the job does.
    """
    reports = folder / daily_report.FOLDER
    old = await asyncio.to_thread(_older, reports, now_ms - int(reports_days * DAY_MS) - HOUR_MS)
    imports = folder / import_readings.FOLDER
    uploads = await asyncio.to_thread(_older, imports, now_ms - _ARRIVING_MS)
    told = {int(path.stem): path for path in uploads if path.suffix == ".txt" and _is_id(path.stem)}
    gone = await retention.jobs_gone(database, list(told)) if told else set()
    old += [told[job_id] for job_id in gone]
    if rest := [path for path in uploads if path.suffix != ".txt"]:
        needed = {Path(name).stem for name in await retention.uploads_needed(database)}
        old += [path for path in rest if path.stem not in needed]
    await asyncio.to_thread(_unlink, old)
    if old:
        log.info("removed %d files of jobs that are no more", len(old))
    return len(old)


def _is_id(stem: str) -> bool:
    return stem.isascii() and stem.isdecimal() and len(stem) < 19


def _older(folder: Path, before_ms: int) -> list[Path]:
    found = []
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # a job takes its own away
                if path.is_file() and path.stat().st_mtime_ns // 1_000_000 < before_ms:
                    found.append(path)
    return found


def _unlink(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
