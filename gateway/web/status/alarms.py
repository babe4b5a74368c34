"""Alarms on the page: those that are open, and one of them with the form to acknowledge it."""

import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from gateway.alarm_texts import may_be_closed
from gateway.errors import Rejected
from gateway.store import alarms
from gateway.store.database import Database
from gateway.web.caller import Caller, Kind
from gateway.web.status.reader import Reader

_MOST = 50
_ID = re.compile(r"[0-9]{1,18}")


async def shown(db: Database) -> list[dict[str, Any]]:
    """Return the newest that are open."""
    return [dict(row) for row in await alarms.page(db, "open", _MOST)]


class AlarmView:
    def __init__(self, db: Database, reader: Reader, now_ms: Callable[[], int]) -> None:
        self._db = db
        self._reader = reader
        self._now_ms = now_ms

    async def get(self, request: web.Request) -> web.Response:
        """Answer with an alarm, open or over."""
        id_ = request.match_info["id"]
        row = await alarms.get(self._db, int(id_)) if _ID.fullmatch(id_) else None
        if row is None:
            raise Rejected(404, "there is no such alarm")
        context = {"alarm": dict(row), "may_close": may_be_closed(row["kind"])}
        return self._reader.answer(request, "alarm.html", context)

    async def acknowledge(self, alarm_id: int, note: str, by: Caller) -> bool:
        """Note that somebody knows of it; return False if it is not open."""
        now_ms, who = self._now_ms(), _named(by)
        return await self._db.write(lambda c: alarms.acknowledge(c, alarm_id, now_ms, who, note))

    async def close(self, alarm_id: int, by: Caller) -> bool:
        """Close it; return False if it is not open. Raises Rejected: 409, it closes by itself."""
        now_ms, who = self._now_ms(), _named(by)
        try:
            return await self._db.write(lambda c: alarms.close_alarm(c, alarm_id, now_ms, who))
        except alarms.NotClosable:
            raise Rejected(409, "it closes by itself when it is no longer true") from None


def _named(caller: Caller) -> str:
    return "operator" if caller.kind is Kind.OPERATOR else "somebody in open mode"
