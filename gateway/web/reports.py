"""`/v1/reports/NAME`: what the jobs wrote for people, from the one folder where they write it."""

import asyncio
import os
import re
import stat
from pathlib import Path

from aiohttp import web

from gateway.errors import Rejected

FOLDER = "reports"
_TYPES = {".html": "text/html", ".csv": "text/csv"}

# No separator and no leading dot: a name is a file of the folder and nothing else.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}(\.html|\.csv)")


class Reports:
    """Serves finished reports.

    Args:
        folder: where the database stands; None in memory, where there are no reports.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder and folder / FOLDER

    async def get(self, request: web.Request) -> web.Response:
        """Return the report of that name, 404 if there is none."""
        name = NAME.fullmatch(request.match_info["name"])
        body = None
        if name is not None and self._folder is not None:
            body = await asyncio.to_thread(_read, self._folder / name[0])
        if name is None or body is None:
            raise Rejected(404, "there is no report of that name: a job's result is a link to its")
        return web.Response(
            body=body,
            headers={
                "Content-Type": f"{_TYPES[name[1]]}; charset=utf-8",
                "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "private, no-cache",
            },
        )


def _read(path: Path) -> bytes | None:
    # Neither somewhere else through a link, nor for ever at a pipe. Windows knows neither flag.
    plain = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, os.O_RDONLY | plain)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)
