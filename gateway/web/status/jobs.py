"""What the page says of jobs. *Received* is not *done*, and a worker that is gone is told of."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.kinds import Kinds
from gateway.languages import Said
from gateway.states import State
from gateway.store import job_pages
from gateway.store.database import Database
from gateway.store.jobs import LEASE_MS

HOUR_MS = 3_600_000
_MOST_SHOWN = 10  # of each state
# A lease is renewed three times while it lasts; who missed that gave no sign.
_NO_SIGN_MS = LEASE_MS // 2
_NO_SIGN = Said("no sign of its worker for %(count)s s", "no sign of its worker for %(count)s s", 0)


@dataclass(frozen=True)
class Hour:
    """What happened in the last hour; `is_least`: there was more than was looked at."""

    finished: int
    failed: int
    again: int
    rescued: int
    is_least: bool

    @property
    def failure_ratio(self) -> float | None:
        """Return the share of jobs that ended as failed, None if none ended."""
        ended = self.finished + self.failed
        return self.failed / ended if ended else None


async def hour(db: Database, now_ms: int) -> Hour:
    """Return what happened since an hour ago."""
    rows = await job_pages.moves(db, now_ms - HOUR_MS)

    def count(*verbs: str, state: State | None = None) -> int:
        return sum(
            row["count"] for row in rows
            if row["verb"] in verbs and (state is None or row["state"] == state)
        )  # fmt: skip

    return Hour(
        finished=count("finish"),
        failed=count("fail", "rescue", state=State.FAILED),
        again=count("fail", "rescue", "retry", state=State.PENDING),
        rescued=count("rescue"),
        is_least=sum(row["count"] for row in rows) >= job_pages.MOST_MOVES,
    )


async def times(db: Database, kinds: Kinds, now_ms: int) -> list[dict[str, Any]]:
    """Return how long jobs took in the last hour, by kind, with what is allowed beside it.

    Beside the row's columns `deadline_ms` and `timeout_ms`; None of a kind that there is no more.
    """
    rows = await job_pages.times(db, now_ms - HOUR_MS)
    return [dict(row) | _limits(kinds, row["kind"]) for row in rows]


def _limits(kinds: Kinds, name: str) -> dict[str, float | None]:
    kind = kinds.get(name)
    if kind is None:
        return {"deadline_ms": None, "timeout_ms": None}
    return {"deadline_ms": kind.limits.deadline_ms, "timeout_ms": kind.timeout_s * 1000}


async def in_short(db: Database, now_ms: int) -> list[dict[str, Any]]:
    """Return the jobs that matter most: running, failed, next to run, and the newest that ended."""
    rows = [
        *await job_pages.running(db, _MOST_SHOWN),
        *await job_pages.listed(db, _MOST_SHOWN, state=State.FAILED),
        *await job_pages.due(db, _MOST_SHOWN),
        *await job_pages.listed(db, _MOST_SHOWN, state=State.DONE),
    ]
    return [told(row, now_ms) for row in rows]


def told(row: sqlite3.Row, now_ms: int) -> dict[str, Any]:
    """Return a job's columns, and `said` (a Said): what its state is in words."""
    job = dict(row)
    return job | {
        "said": _said(job, now_ms),
        "is_in_trouble": job["state"] == State.FAILED or _silence_ms(job, now_ms) >= _NO_SIGN_MS,
        "next_ms": job["run_at_ms"] if job["state"] == State.PENDING else None,
        "link": _own_address(job["result"]),
    }


def _said(job: Mapping[str, Any], now_ms: int) -> Said:
    match State(job["state"]):
        case State.PENDING:
            return _waiting(job, now_ms)
        case State.RUNNING:
            return _running(job, now_ms)
        case State.DONE:
            return _plain("done")
        case State.FAILED:
            return _plain("failed")
        case State.DISCARDED:
            return _plain("discarded")


def _waiting(job: Mapping[str, Any], now_ms: int) -> Said:
    if job["attempts"] or job["crashes"]:
        return _plain("waits to be tried again")
    if job["run_at_ms"] > now_ms:
        return _plain("received, due later")
    return _plain("received, waiting")


def _running(job: Mapping[str, Any], now_ms: int) -> Said:
    silence_ms = _silence_ms(job, now_ms)
    if silence_ms >= LEASE_MS:
        return _plain("its worker is gone, it will be rescued")
    if silence_ms >= _NO_SIGN_MS:
        return replace(_NO_SIGN, count=silence_ms // 1000)
    if job["cancel_requested"]:
        return _plain("running, asked to stop")
    return _plain("running")


def _silence_ms(job: Mapping[str, Any], now_ms: int) -> int:
    until_ms = job["lease_until_ms"]
    return 0 if until_ms is None else int(now_ms - (until_ms - LEASE_MS))


def _plain(text: str) -> Said:
    return Said(text, text, 1)


def _own_address(result: str | None) -> str | None:
    """Return a result that leads to a resource of ours: nothing else becomes a link."""
    return result if result and result.startswith("/v1/") else None
