"""What is in quarantine, judged again by the rules of today."""

import sqlite3
from collections import Counter
from typing import NamedTuple

import msgspec

from gateway.decode import decode
from gateway.errors import Rejected
from gateway.model import Delivery
from gateway.store import queries
from gateway.store.readings import store

_sql = queries.load("quarantine")
STEP_ROWS = 200


class Judged(NamedTuple):
    """What a step did: up to which key it looked, how many are readings now, how many are not."""

    upto: int
    released: int
    kept: int


class _Held(NamedTuple):
    id: int
    device: str
    reason: str
    body: str
    received_at_ms: int


def newest(connection: sqlite3.Connection) -> int:
    """Return the key of the last that came into quarantine; 0 if there is none."""
    key: int = connection.execute(_sql.newest).fetchone()[0]
    return key


def judge(
    connection: sqlite3.Connection,
    after: int,
    newest: int,
    device: str | None = None,
    rows: int = STEP_ROWS,
) -> Judged | None:
    """Judge the next in quarantine again; None when there are no more.

    What is a reading now is stored as if it came with no envelope, when it came: dated by its own
    instant, else by its receipt. It leaves quarantine in the same transaction. It says nothing of
    how the device is now, so when that was last seen stays.
    """
    told = {"after": after, "newest": newest, "device": device, "rows": rows}
    held = [_Held(*row) for row in connection.execute(_sql.next_held, told)]
    if not held:
        return None
    valid = [(each, delivery) for each in held if (delivery := _delivery(each)) is not None]
    left = _store(connection, valid) if valid else []
    connection.execute(_sql.release, (_json([each.id for each in left]),))
    connection.execute(_sql.uncount, (_json(Counter(each.device for each in left)),))
    return Judged(held[-1].id, len(left), len(held) - len(left))


def _delivery(held: _Held) -> Delivery | None:
    """Return it as a delivery of one reading; None if it is refused as before."""
    device = msgspec.json.encode(held.device)
    body = b'{"device":' + device + b',"readings":[' + held.body.encode() + b"]}"
    try:
        batch = decode(body)
    except Rejected:
        return None
    return None if batch.refusals else Delivery(batch, held.received_at_ms, is_live=False)


def _store(connection: sqlite3.Connection, valid: list[tuple[_Held, Delivery]]) -> list[_Held]:
    """Store what can be stored; return what has no more business in quarantine.

    What conflicts, as it did before, stays. What conflicts and was refused for something else
    before has just come into quarantine anew.
    """
    verdicts = store(connection, [delivery for _, delivery in valid])
    return [
        held
        for (held, _), verdict in zip(valid, verdicts, strict=True)
        if [refused.reason for refused in verdict.rejected] != [held.reason]
    ]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
