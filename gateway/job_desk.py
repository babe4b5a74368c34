"""Jobs at the command line: on the database itself, whether a gateway runs on it or not.

One that runs finds what was asked for here within its poll.
"""

import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway import handlers
from gateway.app import now_ms
from gateway.config import Config
from gateway.errors import Misconfigured, Rejected
from gateway.opening import database
from gateway.states import State, Verb
from gateway.store import clock, job_pages
from gateway.store.database import Database
from gateway.store.jobs import Asked, KeyUsed, NotAllowed, Queue
from gateway.web import asked
from gateway.web.shapes import Job

_CALLER = "operator"  # the same as the bearer of the operator's token


class Wish(NamedTuple):
    """A job as it is asked for on a command line. `args` is JSON."""

    kind: str
    args: str = "{}"
    priority: int = 0
    run_at_ms: int | None = None
    idempotency_key: str | None = None


class Life(NamedTuple):
    """A job and its last moves: at_ms, verb, state, worker, detail of each."""

    job: Job
    moves: list[dict[str, Any]]


async def listed(config: Config, state: State | None, limit: int) -> list[Job]:
    """Return the newest jobs. Raises Misconfigured: there is no such database."""
    _refuse_missing(config)
    async with database(config) as db:
        return [Job.of(row) for row in await job_pages.page(db, limit, state=state)]


async def shown(config: Config, id: int) -> Life:
    """Return a job and its moves. Raises Misconfigured: there is no such job or database."""
    _refuse_missing(config)
    async with database(config) as db:
        moves = [dict(row) for row in await job_pages.events(db, id)]
        return Life(await _job(db, id), moves)


async def decided(config: Config, verb: Verb, id: int) -> Job:
    """Retry, discard or cancel a job; return it as it is then.

    Raises:
        Misconfigured: there is no such job, or it is in a state that has no such move.
    """
    _refuse_missing(config)
    queue = Queue(clock=clock.here)
    decide = {Verb.RETRY: queue.retry, Verb.DISCARD: queue.discard, Verb.CANCEL: queue.cancel}[verb]

    def move(connection: sqlite3.Connection) -> None:
        decide(connection, id, now_ms())

    async with database(config) as db:
        job = await _job(db, id)
        try:
            await db.write(move)
        except NotAllowed as error:
            told = error.state or job.state
            raise Misconfigured(f"job {id} is {told}: {verb} is no move from there") from None
        return await _job(db, id)


async def enqueued(config: Config, wish: Wish) -> Job:
    """Ask for a job; return it, or the one that the same key had asked for before.

    Raises:
        Misconfigured: no such kind, args that it does not take, a key used for something else.
    """
    if config.folder is None:
        raise Misconfigured("a job in memory is gone when this ends: give the file with --db")
    job = _asked(config, wish)
    async with database(config) as db:
        try:
            id_, _ = await db.write(lambda c: Queue(clock=clock.here).enqueue(c, job, now_ms()))
        except KeyUsed:
            raise Misconfigured("that idempotency key was used before, for another job") from None
        return await _job(db, id_)


def _asked(config: Config, wish: Wish) -> Asked:
    key = wish.idempotency_key
    try:
        args = msgspec.json.decode(wish.args.encode(errors="replace"), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Misconfigured(f"ARGS is not a JSON object: {error}") from None
    given = wish._asdict() | {"args": args}
    del given["idempotency_key"]
    try:
        ask = asked.decode(msgspec.json.encode(given), handlers.registry(config.for_jobs()))
    except Rejected as error:
        raise Misconfigured(error.detail) from None
    return Asked(
        ask.kind, ask.args_as_json(), ask.priority, ask.run_at_ms,
        caller=_CALLER, idempotency_key=key, fingerprint=ask.fingerprint() if key else None,
    )  # fmt: skip


async def _job(db: Database, id: int) -> Job:
    row = await job_pages.get(db, id)
    if row is None:
        raise Misconfigured(f"there is no job {id}; those that are over are kept for a while only")
    return Job.of(row)


def _refuse_missing(config: Config) -> None:
    if not Path(config.db).exists():  # a slip in the path must not make a new one
        raise Misconfigured(f"there is no database {config.db}; `serve` makes it")
