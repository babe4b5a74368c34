"""`/v1/imports`: takes a CSV file of any size to the disk, where a job reads it; and its report."""

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from aiohttp import web

from gateway.config import Config
from gateway.errors import Rejected, Unavailable
from gateway.handlers import import_readings
from gateway.sheet import MAX_LINE_BYTES, NoSheet, Sheet
from gateway.store.jobs import Asked, KeyUsed
from gateway.web import idempotency
from gateway.web.caller import Kind
from gateway.web.desk import Desk
from gateway.web.disk import Disk
from gateway.web.exchange import CALLER, REQUEST_ID
from gateway.web.idempotency import Key
from gateway.web.shapes import Job

MAX_BYTES = 16 * 1024**3
_MOST_AT_ONCE = 4
_PIECE_BYTES = 256 * 1024
_KEEP_S = 40 * 86_400  # files that no job took away, and reports; longer than a failed job stays

_DIGITS = 18
_FORM = "multipart/form-data"
_CSV = "text/csv"

Read = Callable[[int], Awaitable[bytes]]


class Imports:
    """`POST /v1/imports` and `GET /v1/imports/{id}`."""

    def __init__(self, desk: Desk, config: Config, disk: Disk) -> None:
        self._desk = desk
        self._folder = config.folder and config.folder / import_readings.FOLDER
        self._piece_timeout_s = config.body_timeout_s
        self._disk = disk
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def post(self, request: web.Request) -> web.Response:
        """Take the whole file, then add the job that reads it."""
        self._refuse_without_folder()
        _refuse_unfit(request)
        given = idempotency.key(request.headers.getall("Idempotency-Key", []))
        key = Key(idempotency.scope(request[CALLER]), given) if given is not None else None
        job_id = await self.bring_in(request.content.read, request[REQUEST_ID], key=key)
        row = await self._desk.row(job_id)
        assert row is not None
        return web.Response(
            status=202,
            body=msgspec.json.encode(Job.of(row)),
            content_type="application/json",
            headers={"Location": f"/v1/jobs/{job_id}", "Retry-After": "1",
                     "Cache-Control": "no-store"},
        )  # fmt: skip

    async def bring_in(
        self, read: Read, request_id: str, name: str | None = None, *, key: Key | None = None
    ) -> int:
        """Take a whole file to the disk and add the job that reads it; return the job's id.

        Args:
            read: returns the next of its bytes, at most so many; none: that was all.
            name: what its sender calls it.
            key: the job is the one that there is under it.

        Raises:
            Rejected: 400, 408, 409, 413, 422: it is not to be had whole, is no sheet, or the key
                was used for something else.
            Unavailable: no room, or too many at once.
        """
        folder = self._open_folder()
        self._disk.require_room()
        if self._places.locked():
            raise Unavailable(f"{_MOST_AT_ONCE} files are arriving just now", retry_after_s=10)
        async with self._places:
            await asyncio.to_thread(_sweep, folder)
            file, digest = await self._take(read, folder)
        args = import_readings.Args(file, name and name[: import_readings.MOST_NAME])
        asked = Asked(import_readings.NAME, _json(args), request_id=request_id)
        if key is not None:
            asked = asked._replace(caller=key.caller, idempotency_key=key.key, fingerprint=digest)
        return await self._add(asked, folder / file)

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

    def _refuse_without_folder(self) -> None:
        if self._folder is None:
            raise Rejected(409, "a database in memory has no place for files: start with --db PATH")

    def _open_folder(self) -> Path:
        self._refuse_without_folder()
        assert self._folder is not None
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _unwritable(error) from error
        return self._folder

    async def _take(self, read: Read, folder: Path) -> tuple[str, bytes]:
        """Write the body into the folder, whole and durable or not at all; return the name of the
        file and the SHA-256 of what is in it.
        """
        stem = secrets.token_hex(16)
        part, whole = folder / f"{stem}.part", folder / f"{stem}.csv"
        try:
            with part.open("xb") as file:
                digest = await self._receive(read, file)
                await asyncio.to_thread(os.fsync, file.fileno())
            await asyncio.to_thread(_refuse_no_sheet, part)
            part.rename(whole)
            await asyncio.to_thread(_sync_folder, folder)
        except OSError as error:
            raise _unwritable(error) from error
        finally:
            part.unlink(missing_ok=True)
        return whole.name, digest

    async def _receive(self, read: Read, file: BinaryIO) -> bytes:
        size, digest = 0, hashlib.sha256()

        def write(piece: bytes) -> None:
            file.write(piece)
            digest.update(piece)

        while piece := await self._piece(read):
            size += len(piece)
            if size > MAX_BYTES:
                raise _too_large()
            self._disk.require_room()
            await asyncio.to_thread(write, piece)
        file.flush()
        if not size:
            raise Rejected(422, "the file is empty: its first line must name the columns")
        return digest.digest()

    async def _piece(self, read: Read) -> bytes:
        try:
            async with asyncio.timeout(self._piece_timeout_s):
                return await read(_PIECE_BYTES)
        except TimeoutError:
            raise Rejected(408, f"nothing more came for {self._piece_timeout_s:g} s") from None
        except (web.RequestPayloadError, ConnectionError):
            raise Rejected(400, "the body is not complete") from None

    async def _add(self, asked: Asked, file: Path) -> int:
        """Add the job; remove the file if it is known that nobody will ever read it."""
        try:
            job_id, is_new = await self._desk.add(asked)
        except (KeyUsed, Unavailable) as failure:
            await asyncio.to_thread(file.unlink)
            if isinstance(failure, Unavailable):
                raise
            raise Rejected(
                422, "this Idempotency-Key was used before, for another file or another job: take"
                " a new key for a new file"
            ) from None  # fmt: skip
        if not is_new:
            await asyncio.to_thread(file.unlink)
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


def _json(args: import_readings.Args) -> str:
    return msgspec.json.encode(args).decode()


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
