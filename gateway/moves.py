"""The moves of a worker and of the reaper, as events for whoever watches."""

import sqlite3

from gateway.events import (
    JobClaimed,
    JobDiscarded,
    JobEvent,
    JobFailed,
    JobFinished,
    JobInterrupted,
    JobRescued,
)
from gateway.outcomes import Crashed, Done, Dropped, Failed, Released, Snoozed
from gateway.states import State
from gateway.store.jobs import Claimed, Ended


def of_claim(job: Claimed) -> JobClaimed:
    return JobClaimed(job.id, job.kind, job.request_id)


def of_end(ended: Ended, job: Claimed, state: State) -> JobEvent:
    """Return what became of `job`, which is in `state` after it was handed in."""
    who = job.id, job.kind, job.request_id
    match ended.outcome:
        case Done():
            return JobFinished(*who, ended.work_s)
        case Failed(error):
            return JobFailed(*who, ended.work_s, error, state is State.FAILED)
        case Snoozed() | Released():
            return JobInterrupted(*who)
        case Dropped():
            return JobDiscarded(*who)
        case Crashed():
            return JobRescued(*who, state is not State.PENDING)


def of_rescue(row: sqlite3.Row) -> JobRescued:
    """Return the rescue of a job, from its row after it."""
    is_final = row["state"] in (State.FAILED, State.DISCARDED)
    return JobRescued(row["id"], row["kind"], row["request_id"], is_final)
