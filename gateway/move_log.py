"""One log line for each move of a job: who asked and who did it share `request_id`."""

import logging

from gateway.events import (
    Event,
    JobAdded,
    JobClaimed,
    JobDiscarded,
    JobEvent,
    JobFailed,
    JobFinished,
    JobInterrupted,
    JobProgressed,
    JobRescued,
    JobRetried,
)

log = logging.getLogger(__name__)

_MOVES: dict[type[JobEvent], tuple[int, str]] = {
    JobAdded: (logging.INFO, "added"),
    JobClaimed: (logging.INFO, "claimed"),
    JobProgressed: (logging.DEBUG, "progressed"),
    JobFinished: (logging.INFO, "finished"),
    JobFailed: (logging.WARNING, "failed"),
    JobRetried: (logging.INFO, "retried"),
    JobRescued: (logging.WARNING, "lost its worker and was taken back"),
    JobInterrupted: (logging.INFO, "interrupted"),
    JobDiscarded: (logging.INFO, "discarded"),
}


def watch(event: Event) -> None:
    """Write the line of a job's move, at the level that it deserves; subscribe it to a bus."""
    if not isinstance(event, JobEvent):
        return
    level, verb = _MOVES[type(event)]
    if log.isEnabledFor(level):
        log.log(level, "job %d %s%s", event.id, verb, _more(event), extra=_extra(event))


def _more(event: JobEvent) -> str:
    match event:
        case JobProgressed():
            return f" to {event.progress} %{f', {event.stage}' if event.stage else ''}"
        case JobFailed():
            return f"{_for_good(event.is_final)}: {event.error}"
        case JobRescued():
            return _for_good(event.is_final)
    return ""


def _for_good(is_final: bool) -> str:
    return " for good" if is_final else ""


def _extra(event: JobEvent) -> dict[str, object]:
    extra: dict[str, object] = {
        "job_id": event.id,
        "kind": event.kind,
        "request_id": event.request_id,
    }
    if isinstance(event, JobFinished | JobFailed):
        extra["work_s"] = round(event.work_s, 3)
    return extra
