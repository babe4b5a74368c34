"""What a kind of job is, and what its handler is given. Pure but for the handler itself."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from gateway.outcomes import Permanent, Snooze
from gateway.store import effects
from gateway.store.database import Database
from gateway.store.jobs import Limits

_BESIDE_S = 5


class Progress(Protocol):
    """Takes how far a job is: 0..100, and what it is doing."""

    def __call__(self, percent: int, stage: str | None) -> None: ...


@dataclass
class Effect:
    """Something that a job does outside the database. The body sets `result`, if it has one.

    Attributes:
        may_have_happened: the body sets it to False while nothing was done yet, or when it was
            told so; if it ends badly then, the intention is withdrawn and it is due again.
    """

    key: str
    is_due: bool
    result: str | None = None
    may_have_happened: bool = True


@dataclass
class Context:
    """What a handler has beside its args.

    Attributes:
        job_id: of the job it works on.
        database: to read from, and to write into in short transactions.
        log: its lines carry the job's id and the id of the request that asked for it.
    """

    job_id: int
    request_id: str | None
    database: Database
    log: "logging.LoggerAdapter[logging.Logger]"
    report: Progress = field(repr=False, default=lambda percent, stage: None)

    def progress(self, fraction: float, stage: str | None = None) -> None:
        """Say how far the job is, 0 to 1, and in which stage. Costs nothing; shown within 1 s."""
        self.report(max(0, min(100, int(fraction * 100))), stage)

    @asynccontextmanager
    async def effect(self, key: str, *, repeat: bool = False) -> AsyncIterator[Effect]:
        """Do something outside the database at most once: `async with … as e: if e.is_due: …`.

        The intention is written before the body, its end after it. Found done, it is not due.
        Found intended and not known to have happened: with `repeat` it is due again, under the
        same key, which whoever is called must know to be the same; else a person has to look.

        Args:
            key: what is done, for all jobs and all time, such as `mail:report:2026-11-30`.

        Raises:
            Permanent: it may have happened before.
            Snooze: another job is at it.
        """
        found = await self.database.write(lambda c: effects.intend(c, key, self.job_id, _now_ms()))
        if found.done_at_ms is not None:
            yield Effect(key, is_due=False, result=found.result)
            return
        if found.job_id != self.job_id and not repeat:
            raise Snooze(_BESIDE_S, f"waits: job {found.job_id} may be doing {key} just now")
        if not found.is_new and not repeat:
            raise Permanent(
                f"{key} was begun before and may have happened; it was not repeated. Look there"
                " first: trying this job again repeats it"
            )
        effect = Effect(key, is_due=True)
        try:
            yield effect
        except BaseException:  # also when it is stopped
            if not effect.may_have_happened:
                await self.database.write(lambda c: effects.withdraw(c, key))
            raise
        await self.database.write(lambda c: effects.conclude(c, key, effect.result, _now_ms()))


Handler = Callable[[Context, Any], Awaitable[str | None]]


@dataclass(frozen=True)
class Kind:
    """One kind of job.

    Attributes:
        handler: does it and returns a link to what came of it, or None. It raises `Permanent`,
            `RetryAfter` or `Snooze`; anything else it raises is tried again.
        args: the msgspec.Struct that its args are decoded into.
        limits: when it gives up.
        timeout_s: of one try; then the try has failed.
        heavy: it needs the processor for long, so it runs in a process of its own.
    """

    name: str
    handler: Handler
    args: type[msgspec.Struct]
    limits: Limits = field(default_factory=Limits)
    timeout_s: float = 300.0
    heavy: bool = False

    def decode(self, args: str | bytes) -> Any:
        """Return the args as the handler wants them.

        Raises:
            Permanent: they are not what this kind takes; the message names the field.
        """
        try:
            return msgspec.json.decode(args, type=self.args)
        except msgspec.ValidationError as error:
            raise Permanent(f"args of {self.name}: {error}") from error


Kinds = Mapping[str, Kind]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
