"""`import_readings`: brings in the readings of a CSV file, all that are new and each only once.

What a chunk of the file brings, the lines of it that are bad, and how far the file is read are
written in one transaction, so a job that died goes on where it was.
"""

import asyncio
import os
import time
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta, Struct

from gateway.handlers import chunks
from gateway.handlers.chunks import Chunk
from gateway.handlers.occurrences import Occurrences
from gateway.handlers.place import Place
from gateway.ingest import Ingest
from gateway.kinds import Context, Kind
from gateway.model import Verdicts
from gateway.outcomes import Permanent
from gateway.sheet import MAX_LINE_BYTES, NoSheet, Sheet
from gateway.store import clock, imports
from gateway.store.imports import Fault, Reached
from gateway.store.jobs import Asked, Limits, Queue

NAME = "import_readings"
FOLDER = "imports"  # beside the database
MOST_NAME = 255

_TIMEOUT_S = 24 * 3600.0
_LIMITS = Limits(deadline_ms=24 * 3_600_000, concurrency=1)
_ASIDE = 3
_MOST_LISTED = 100_000  # bad lines, in the report; of a file that is no sheet at all each one is
_MOST_TOLD = 3  # bad lines, in the job itself


class Args(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`file`: its name in the folder of imports; `name`: what its sender calls it."""

    file: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\.csv\Z")]
    name: Annotated[str, Meta(max_length=MOST_NAME)] | None = None


def kind(settings: dict[str, Any]) -> Kind:
    place = Place(settings, FOLDER)

    async def bring_in(context: Context, args: Args) -> str:
        job_id, folder = context.job_id, place.folder()
        path = folder / args.file
        reached = await context.database.write(lambda c: imports.begin(c, job_id))
        if not reached.finished:
            if not path.is_file():
                raise Permanent(f"{args.file} is not there any more: send the file once more")
            reached = await _Import(context, path, place).run(reached)
            await _report(context, report_path(folder, job_id), reached)
            await context.database.write(lambda c: _finish(c, settings, context, reached))
        path.unlink(missing_ok=True)
        _refuse_if_all_was_bad(report_path(folder, job_id), reached, job_id)
        return link(job_id)

    return Kind(NAME, bring_in, Args, _LIMITS, _TIMEOUT_S, heavy=True)


def link(job_id: int) -> str:
    """Return where the report of an import is read."""
    return f"/v1/imports/{job_id}"


def report_path(folder: Path, job_id: int) -> Path:
    return folder / f"{job_id}.txt"


class _Import:
    """One file on its way through the door for readings.

    While somebody else writes too it pauses after each chunk for some times what that took: who
    waits for SQLite's lock looks at it now and then only, and would find it taken each time.
    """

    def __init__(self, context: Context, path: Path, place: Place) -> None:
        self._context = context
        self._path = path
        self._place = place
        self._ingest = Ingest(context.database)
        self._version = 0
        self._size = max(path.stat().st_size, 1)

    async def run(self, reached: Reached) -> Reached:
        """Store all of it from where it got to; return where it then is."""
        with self._path.open("rb") as file, Occurrences(self._path.with_suffix(".seen")) as seen:
            for chunk in chunks.read(file, _sheet(file), seen, reached.offset_bytes):
                self._place.require_room()
                reached = await self._take(reached, chunk)
                self._tell(reached, chunk.faults)
        return reached

    async def _take(self, before: Reached, chunk: Chunk) -> Reached:
        batches = list(chunk.batches())
        after, faults, version = before, chunk.faults, 0

        def note(connection: Connection, verdicts: list[Verdicts]) -> None:
            nonlocal after, faults, version
            version = imports.version(connection)
            faults = [*chunk.faults, *_refused(batches, verdicts)]
            after = _moved(before, chunk, verdicts, len(faults))
            listed = faults[: max(0, _MOST_LISTED - before.bad)]
            imports.advance(connection, self._context.job_id, after, listed)

        began, bodies = time.monotonic(), [body for body, _ in batches]
        await self._ingest.bring_in(bodies, received_ms=_now_ms(), note=note)
        if version != self._version:
            self._version = version
            await asyncio.sleep(_ASIDE * (time.monotonic() - began))
        return after

    def _tell(self, reached: Reached, faults: list[Fault]) -> None:
        stage = f"line {reached.line}: {reached.stored} new, {reached.bad} bad"
        if faults:
            stage += f" ({_told(faults[0])})"
        self._context.progress(reached.offset_bytes / self._size, stage)


def _sheet(file: BinaryIO) -> Sheet:
    try:
        return Sheet.of(file.readline(MAX_LINE_BYTES))
    except NoSheet as error:
        raise Permanent(str(error)) from error


def _refused(batches: list[tuple[bytes, list[int]]], verdicts: list[Verdicts]) -> list[Fault]:
    """Return the lines that the door for readings did not take."""
    return [
        Fault(lines[one.index], one.reason)
        for (_, lines), told in zip(batches, verdicts, strict=True)
        for one in told.rejected
    ]


def _moved(before: Reached, chunk: Chunk, verdicts: list[Verdicts], bad: int) -> Reached:
    stored = sum(told.stored for told in verdicts)
    instants = [at for at in (before.first_at_ms, before.last_at_ms) if at is not None]
    if stored:
        instants += [one["at_ms"] for each in chunk.devices.values() for _, one in each]
    return Reached(
        chunk.offset_bytes,
        chunk.line,
        before.stored + stored,
        before.duplicates + sum(told.duplicates for told in verdicts),
        before.bad + bad,
        min(instants, default=None),
        max(instants, default=None),
    )


async def _report(context: Context, path: Path, reached: Reached) -> None:
    """Write the bad lines into a file; whole, or not at all."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write(
            f"{reached.stored} new, {reached.duplicates} known before, {reached.bad} bad lines\n"
        )
        async for faults in imports.faults(context.database, context.job_id):
            file.writelines(f"{_told(fault)}\n" for fault in faults)
        if reached.bad > _MOST_LISTED:
            file.write(f"and {reached.bad - _MOST_LISTED} more, of which none is listed\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _finish(
    connection: Connection, settings: dict[str, Any], context: Context, reached: Reached
) -> None:
    """Write down that it is in, and ask for new charts of the time that it has readings of."""
    from gateway.handlers import registry  # which knows this module

    imports.finish(connection, context.job_id, reached)
    if reached.stored and "recalculate_chart" in registry(settings):
        span = {"from": reached.first_at_ms, "to": reached.last_at_ms}
        args = msgspec.json.encode(span).decode()
        asked = Asked("recalculate_chart", args, request_id=context.request_id)
        Queue(clock=clock.here).enqueue(connection, asked, _now_ms())


def _refuse_if_all_was_bad(report: Path, reached: Reached, job_id: int) -> None:
    if reached.stored or reached.duplicates or not reached.bad:
        return
    with report.open(encoding="utf-8") as file:
        told = "; ".join(line.strip() for line in islice(file, 1, 1 + _MOST_TOLD))
    raise Permanent(f"none of its {reached.bad} lines is a reading: {told}; all: {link(job_id)}")


def _told(fault: Fault) -> str:
    return f"line {fault.line}: {fault.reason}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
