"""Keeps the database file and its WAL small while nobody needs them.

A plain task. It waits for a time in which nothing is written, and does a bounded piece at a time,
so that a delivery that comes meanwhile waits for some ms at most.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gateway.store import upkeep

log = logging.getLogger(__name__)

LOOK_S = 30.0
IDLE_MS = 10_000  # since something was last written
_PIECE_PAGES = 256  # a MiB
_PIECES_AT_ONCE = 200
_PAUSE_S = 0.02
# What is free in the file is used again. Cutting it off pays when it is much of it.
_FREE_SHARE = 0.25
_FREE_PAGES = 4096  # 16 MiB


class Upkeep:
    """Looks after one database file.

    Args:
        now_ms: the wall clock, which the file's times are of.
        quiet_ms: for how long nothing has to be written before it begins.
    """

    def __init__(self, path: str, now_ms: Callable[[], int], *, quiet_ms: int = IDLE_MS) -> None:
        self._path = path
        self._wal = Path(path + "-wal")
        self._now_ms = now_ms
        self._quiet_ms = quiet_ms
        self._has_told = False

    async def run(self) -> None:
        """Look every half minute until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.run_once()
            except (sqlite3.Error, OSError) as error:
                log.debug("the database file is left as it is for now: %s", error)

    async def run_once(self) -> bool:
        """Make both files as small as they can be, if nothing is written; return if it was so."""
        if not self._is_idle():
            return False
        await self._shrink()
        if not self._wal_bytes():
            return True
        return await asyncio.to_thread(upkeep.checkpoint, self._path)

    def _is_idle(self) -> bool:
        try:
            written_ms = self._wal.stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return True
        return abs(self._now_ms() - written_ms) >= self._quiet_ms

    def _wal_bytes(self) -> int:
        return self._wal.stat().st_size if self._wal.exists() else 0

    async def _shrink(self) -> None:
        free, file_bytes = await asyncio.to_thread(self._room)
        if not is_much_free(free, file_bytes):
            return
        if not await asyncio.to_thread(upkeep.can_shrink, self._path):
            self._tell()
            return
        for _ in range(_PIECES_AT_ONCE):
            if not await asyncio.to_thread(upkeep.shrink, self._path, _PIECE_PAGES):
                break
            await asyncio.sleep(_PAUSE_S)

    def _room(self) -> tuple[int, int]:
        return upkeep.shrink(self._path, 0), Path(self._path).stat().st_size

    def _tell(self) -> None:
        if not self._has_told:
            log.info("%s", how_to_shrink(self._path))
        self._has_told = True


def is_much_free(free_pages: int, file_bytes: int, page_bytes: int = 4096) -> bool:
    """Return whether so much of the file is free that it is worth cutting off."""
    return free_pages >= _FREE_PAGES and free_pages * page_bytes >= _FREE_SHARE * file_bytes


def how_to_shrink(path: str) -> str:
    """Say what a person can do about a file that can not be cut piece by piece."""
    return (
        f"much of {path} is free and will be used again; to give it back to the disk, stop the"
        f" gateway and run: sqlite3 {path} 'PRAGMA auto_vacuum = INCREMENTAL; VACUUM'"
    )
