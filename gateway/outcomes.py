"""How a try ended, as a value, and what a handler raises to say so. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """It is done; `result` is a link to what came of it."""

    result: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be done.

    Args:
        error: for a person to read.
        permanent: another try would end the same.
        retry_after_ms: what the service that was called asked for, instead of the usual wait.
    """

    error: str
    permanent: bool = False
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    """It is too early, and `why`; come back in `delay_ms`. Not counted as a try."""

    delay_ms: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """The worker stops and gives it back. Not counted as a try."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A person cancelled it, and its worker has seen it."""


class Permanent(Exception):
    """Raised by a handler: another try would end the same."""


class RetryAfter(Exception):
    """Raised by a handler: the service that was called asks to come back in `delay_s`."""

    def __init__(self, delay_s: float, error: str) -> None:
        super().__init__(error)
        self.delay_s = delay_s


class Snooze(Exception):
    """Raised by a handler: it is too early, and `why`; come back in `delay_s`."""

    def __init__(self, delay_s: float, why: str | None = None) -> None:
        super().__init__(why or f"in {delay_s:g} s")
        self.delay_s = delay_s
        self.why = why


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process that did it died. No try ended, so it is counted apart."""

    error: str


Outcome = Done | Failed | Snoozed | Released | Dropped | Crashed


def of(error: BaseException) -> Outcome:
    """Return the outcome that a handler's exception stands for."""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    match error:
        case Permanent():
            return Failed(str(error), permanent=True)
        case RetryAfter():
            return Failed(str(error), retry_after_ms=int(error.delay_s * 1000))
        case Snooze():
            return Snoozed(int(error.delay_s * 1000), error.why)
    return Failed(told)
