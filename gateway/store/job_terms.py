"""What is said of jobs: what is asked for, what a worker has and hands in, when a kind gives up."""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.outcomes import Outcome
from gateway.states import State


@dataclass(frozen=True)
class Limits:
    """When a kind of job gives up: by attempts, by crashes, and by time since its first claim."""

    max_attempts: int = 5
    max_crashes: int = 2  # the third makes it failed
    deadline_ms: int = 10 * 60_000
    concurrency: int | None = None  # at most so many run at a time, in all processes


class Asked(NamedTuple):
    """A job as somebody asks for it. `args` is JSON; `run_at_ms` None: now."""

    kind: str
    args: str
    priority: int = 0
    run_at_ms: int | None = None
    request_id: str | None = None
    caller: str = ""
    idempotency_key: str | None = None
    fingerprint: bytes | None = None


class Claimed(NamedTuple):
    """A job in the hands of the worker that has its token."""

    id: int
    kind: str
    args: str
    token: str
    attempts: int
    crashes: int
    request_id: str | None


class Ended(NamedTuple):
    """What a worker hands in. `job` and `work_s`, what it had and how long, are for watchers."""

    id: int
    token: str
    outcome: Outcome
    job: Claimed | None = None
    work_s: float = 0.0


class KeyUsed(Exception):
    """The idempotency key was used before, for something else."""


class NotAllowed(Exception):
    """The job is in a state (None: there is no such job) that does not have this move."""

    def __init__(self, state: State | None) -> None:
        super().__init__(state)
        self.state = state
