"""`/v1/imports`: takes a CSV file of any size to the disk, where a job reads it; and its report."""

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from aiohttp import web

from gateway.config import Config
from gateway.errors import Rejected, Unavailable
from gateway.handlers import import_readings
from gateway.sheet import MAX_LINE_BYTES, NoSheet, Sheet
from gateway.store import job_pages
from gateway.store.database import Database
from gateway.store.jobs import Asked, Queue
from gateway.web.disk import Disk
from gateway.web.exchange import CALLER, REQUEST_ID
from gateway.web.gate import Kind
from gateway.web.shapes import Job

MAX_BYTES = 16 * 1024**3
_MOST_AT_ONCE = 4
_PIECE_BYTES = 256 * 1024
_KEEP_S = 40 * 86_400  # files that no job took away, and reports; longer than a failed job stays

_DIGITS = 18
_FORM = "multipart/form-data"
_CSV = "text/csv"


class Imports:
    """`POST /v1/imports` and `GET /v1/imports/{id}`.

    Args:
        wake: tells the workers of this process that there is a job.
    """

    def __init__(
        self,
        db: Database,
        queue: Queue,
        config: Config,
        disk: Disk,
        wake: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._db = db
        self._queue = queue
        self._folder = config.folder and config.folder / import_readings.FOLDER
        self._piece_timeout_s = config.body_timeout_s
        self._disk = disk
        self._wake = wake
        self._now_ms = now_ms
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def post(self, request: web.Request) -> web.Response:
        """Take the whole file, then add the job that reads it."""
        folder = self._open_folder()
        _refuse_unfit(request)
        self._disk.require_room()
        if self._places.locked():
            raise Unavailable(f"{_MOST_AT_ONCE} files are arriving just now", retry_after_s=10)
        async with self._places:
            await asyncio.to_thread(_sweep, folder)
            name = await self._take(request, folder)
        job_id = await self._enqueue(name, request[REQUEST_ID], folder)
        self._wake()
        row = await job_pages.get(self._db, job_id)
        assert row is not None
        return web.Response(
            status=202,
            body=msgspec.json.encode(Job.of(row)),
            content_type="application/json",
            headers={"Location": f"/v1/jobs/{job_id}", "Retry-After": "1",
                     "Cache-Control": "no-store"},
        )  # fmt: skip

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Answer with the report of an import that is over: what it brought, and each bad line."""
        given = request.match_info["id"]
        if self._folder and given.isascii() and given.isdecimal() and len(given) <= _DIGITS:
            report = import_readings.report_path(self._folder, int(given))
            if await asyncio.to_thread(report.is_file):
                return web.Response(
                    body=_pieces(report),
                    headers={"Content-Type": "text/plain; charset=utf-8",
                             "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
                )  # fmt: skip
        raise Rejected(404, "there is no report of such an import; it comes when the job is over")

    def _open_folder(self) -> Path:
        if self._folder is None:
            raise Rejected(409, "a database in memory has no place for files: start with --db PATH")
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _unwritable(error) from error
        return self._folder

    async def _take(self, request: web.Request, folder: Path) -> str:
        """Write the body into the folder, whole and durable or not at all; return its name."""
        stem = secrets.token_hex(16)
        part, whole = folder / f"{stem}.part", folder / f"{stem}.csv"
        try:
            with part.open("xb") as file:
                await self._receive(request, file)
                await asyncio.to_thread(os.fsync, file.fileno())
            await asyncio.to_thread(_refuse_no_sheet, part)
            part.rename(whole)
            await asyncio.to_thread(_sync_folder, folder)
        except OSError as error:
            raise _unwritable(error) from error
        finally:
            part.unlink(missing_ok=True)
        return whole.name

    async def _receive(self, request: web.Request, file: BinaryIO) -> None:
        size = 0
        while piece := await self._piece(request):
            size += len(piece)
            if size > MAX_BYTES:
                raise _too_large()
            self._disk.require_room()
            await asyncio.to_thread(file.write, piece)
        file.flush()
        if not size:
            raise Rejected(422, "the file is empty: its first line must name the columns")

    async def _piece(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._piece_timeout_s):
                return await request.content.read(_PIECE_BYTES)
        except TimeoutError:
            raise Rejected(408, f"nothing more came for {self._piece_timeout_s:g} s") from None
        except (web.RequestPayloadError, ConnectionError):
            raise Rejected(400, "the body is not complete") from None

    async def _enqueue(self, name: str, request_id: str, folder: Path) -> int:
        args = msgspec.json.encode(import_readings.Args(name)).decode()
        asked = Asked(import_readings.NAME, args, request_id=request_id)
        try:
            job_id, _ = await self._db.write(
                lambda c: self._queue.enqueue(c, asked, self._now_ms())
            )
        except Unavailable:
            (folder / name).unlink(missing_ok=True)  # nobody would ever read it
            raise
        return job_id


def _refuse_unfit(request: web.Request) -> None:
    form = request.content_type
    # A page of another site can make a browser send anything but this without asking us.
    if form == _FORM or (request[CALLER].kind is Kind.OPEN and form != _CSV):
        raise Rejected(415, f"send the file itself as the body, with Content-Type: {_CSV}")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Rejected(415, "send the file as it is, without Content-Encoding")
    if (request.content_length or 0) > MAX_BYTES:
        raise _too_large()


def _unwritable(error: OSError) -> Unavailable:
    return Unavailable(f"the file can not be written: {error.strerror}", retry_after_s=30)


def _too_large() -> Rejected:
    return Rejected(413, f"the file is larger than {MAX_BYTES // 1024**3} GiB: send it in parts")


def _refuse_no_sheet(path: Path) -> None:
    with path.open("rb") as file:
        try:
            Sheet.of(file.readline(MAX_LINE_BYTES))
        except NoSheet as error:
            raise Rejected(422, str(error)) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Remove what is older than any job that could want it."""
    oldest = time.time() - _KEEP_S
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # a job takes its own away
            if path.stat().st_mtime < oldest:
                path.unlink()


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
