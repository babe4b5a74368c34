"""`/v1/readings`: boards deliver them, operators read them."""

import re
import sqlite3
from collections.abc import AsyncIterator, Callable

import msgspec
from aiohttp import web

from gateway.config import Config
from gateway.decode import decode
from gateway.errors import Rejected
from gateway.ingest import Ingest
from gateway.store import pages
from gateway.store.database import Database
from gateway.web import csv_rows
from gateway.web.accept import preferred
from gateway.web.body import MAX_BYTES
from gateway.web.caller import Caller, Kind
from gateway.web.disk import Disk
from gateway.web.exchange import BODY, CALLER, REQUEST_ID
from gateway.web.inflate import inflate
from gateway.web.parameters import Parameters
from gateway.web.quotas import Quotas

JSON = "application/json"
CSV = "text/csv"

_PARAMETERS = frozenset({"device", "sensor", "from", "to", "after", "limit"})
_USUAL_LIMIT = 100
_MOST_INTEGER = 2**63 - 1
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SENSOR = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,64}")

_encode = msgspec.json.Encoder().encode


class Delivery:
    """`POST /v1/readings`."""

    def __init__(
        self,
        ingest: Ingest,
        disk: Disk,
        quotas: Quotas,
        config: Config,
        now_ms: Callable[[], int],
    ) -> None:
        self._ingest = ingest
        self._disk = disk
        self._quotas = quotas
        self._max_body_bytes = config.max_body_bytes
        self._now_ms = now_ms

    async def post(self, request: web.Request) -> web.Response:
        """Take a batch and answer after the commit."""
        caller = request[CALLER]
        if caller.kind is Kind.OPEN and request.content_type != JSON:
            # A page of another site can make a browser send anything but this without asking us.
            raise Rejected(415, f"Content-Type must be {JSON}")
        encoding = request.headers.get("Content-Encoding", "")
        return await self.take(request[BODY].sent, encoding, caller, request[REQUEST_ID])

    async def take(
        self, sent: bytes, encoding: str, caller: Caller, request_id: str
    ) -> web.Response:
        """Take a batch from whichever way it came, and return the answer after the commit.

        Raises:
            Rejected, Unavailable: as `Ingest.deliver`; 413 and 415 for what it can not be read as,
                403 and 429 as `Quotas`.
        """
        received_ms = self._now_ms()
        self._disk.require_room()
        batch = inflate(sent, encoding, MAX_BYTES)
        if len(batch) > self._max_body_bytes:
            decode(batch)  # what would be refused at any size is told so
            raise Rejected(413, f"the body is larger than {self._max_body_bytes} bytes")
        async with self._quotas.admitted(batch, caller):
            verdicts = await self._ingest.deliver(
                batch, device=caller.device, received_ms=received_ms
            )
        answer = {
            "stored": verdicts.stored,
            "duplicates": verdicts.duplicates,
            "rejected": verdicts.rejected,
            "server_ms": self._now_ms(),
            "request_id": request_id,
        }
        return web.Response(body=_encode(answer), content_type=JSON)


class Readings:
    """`GET /v1/readings`: a page as JSON, or as CSV all that is asked for."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def get(self, request: web.Request) -> web.Response:
        given = Parameters(request.query, _PARAMETERS)
        wanted, after = _wanted(given), given.integer("after", 0, _MOST_INTEGER) or 0
        if preferred(request.headers.get("Accept", ""), (JSON, CSV)) == CSV:
            limit = given.integer("limit", 1, _MOST_INTEGER)
            return _csv(pages.every_reading(self._db, wanted, after, limit))
        limit = given.integer("limit", 1, pages.MOST_AT_ONCE) or _USUAL_LIMIT
        page = await pages.readings(self._db, wanted, after, limit)
        found = {"readings": [dict(row) for row in page.rows], "next": page.next}
        return web.Response(body=_encode(found), content_type=JSON)

    async def of_device(self, request: web.Request) -> web.Response:
        """Answer with all readings of one device as CSV, for a link of its page."""
        wanted = pages.Filter(device=request.match_info["id"])
        return _csv(pages.every_reading(self._db, wanted, 0, None))


def _wanted(given: Parameters) -> pages.Filter:
    from_ms, to_ms = (given.integer(name, 0, _MOST_INTEGER) for name in ("from", "to"))
    return pages.Filter(
        device=given.text("device", _DEVICE, "the name of a device"),
        sensor=given.text("sensor", _SENSOR, "the name of a sensor"),
        from_ms=pages.EVER[0] if from_ms is None else from_ms,
        to_ms=pages.EVER[1] if to_ms is None else to_ms,
    )


def _csv(pieces: AsyncIterator[list[sqlite3.Row]]) -> web.Response:
    return web.Response(
        body=_lines(pieces),
        headers={
            "Content-Type": f"{CSV}; charset=utf-8",
            "Content-Disposition": 'attachment; filename="readings.csv"',
            "X-Content-Type-Options": "nosniff",
        },
    )


async def _lines(pieces: AsyncIterator[list[sqlite3.Row]]) -> AsyncIterator[bytes]:
    yield csv_rows.head()
    async for rows in pieces:
        yield csv_rows.lines(rows)
