"""`GET /v1/devices`: every board as it said it is, and what of its readings is here or missing."""

import re
import sqlite3
from collections import defaultdict
from typing import Any

import msgspec
from aiohttp import web

from gateway.store import pages
from gateway.store.database import Database
from gateway.web.parameters import Parameters

_PARAMETERS = frozenset({"after", "limit"})
_USUAL_LIMIT = 100
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Devices:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def get(self, request: web.Request) -> web.Response:
        given = Parameters(request.query, _PARAMETERS)
        after = given.text("after", _DEVICE, "the name of a device") or ""
        limit = given.integer("limit", 1, pages.MOST_AT_ONCE) or _USUAL_LIMIT
        found = await described(self._db, after, limit)
        next_ = found[-1]["device"] if len(found) == limit else None
        body = msgspec.json.encode({"devices": found, "next": next_})
        return web.Response(body=body, content_type="application/json")


async def described(db: Database, after: str, limit: int) -> list[dict[str, Any]]:
    """Return at most `limit` devices with names behind `after`, each as the API shows it."""
    rows = await pages.devices(db, after, limit)
    if not rows:
        return []
    first, last = rows[0]["name"], rows[-1]["name"]
    gaps = defaultdict(list)
    for gap in await pages.gaps(db, first, last):
        gaps[gap["device"]].append(gap)
    lost = await pages.lost(db, first, last)
    return [_described(row, gaps[row["name"]], lost.get(row["name"], 0)) for row in rows]


def _described(row: sqlite3.Row, gaps: list[sqlite3.Row], lost: int) -> dict[str, Any]:
    return {
        "device": row["name"],
        "added_ms": row["added_at_ms"],
        "last_seen_ms": row["last_seen_at_ms"],
        "silent": bool(row["silent"]),
        "has_key": bool(row["has_key"]),
        "boot": row["boot"],
        "boots": row["boots"],
        "health": msgspec.json.decode(row["health"]) if row["health"] else {},
        "crash": row["crash"],
        "crash_ms": row["crash_at_ms"],
        "readings": {
            "stored": row["stored"],
            "duplicates": row["duplicates"],
            "quarantined": row["quarantined"],
            "missing": gaps[0]["missing"] if gaps else 0,
            "lost": lost,
        },
        "gaps": [{"boot": gap["boot"], "from": gap["first"], "to": gap["last"]} for gap in gaps],
        "ignored": row["ignored"],
    }
