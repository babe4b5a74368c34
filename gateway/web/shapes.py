"""What the API answers with, as types: the answers of jobs are made of them, and
`/v1/openapi.json` describes all of them."""

import sqlite3
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from gateway.alarm_texts import may_be_closed, text_of
from gateway.states import State

Percent = Annotated[int, Meta(ge=0, le=100)]
Count = Annotated[int, Meta(ge=0)]
DeviceName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{1,64}\Z")]


class Job(Struct):
    """A job as its row says. `next_attempt_ms` is null unless it is pending."""

    id: int
    kind: str
    args: dict[str, Any]
    state: State
    progress: Percent
    stage: str | None
    error: str | None
    attempts: Count
    crashes: Count
    cancel_requested: bool
    priority: int
    next_attempt_ms: int | None
    created_ms: int
    started_ms: int | None
    finished_ms: int | None
    request_id: str | None
    result: str | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> "Job":
        state = State(row["state"])
        return cls(
            id=row["id"],
            kind=row["kind"],
            args=msgspec.json.decode(row["args"]),
            state=state,
            progress=row["progress"],
            stage=row["stage"],
            error=row["error"],
            attempts=row["attempts"],
            crashes=row["crashes"],
            cancel_requested=bool(row["cancel_requested"]),
            priority=row["priority"],
            next_attempt_ms=row["run_at_ms"] if state is State.PENDING else None,
            created_ms=row["created_at_ms"],
            started_ms=row["started_at_ms"],
            finished_ms=row["finished_at_ms"],
            request_id=row["request_id"],
            result=row["result"],
        )


class JobPage(Struct):
    """Jobs, the newest first. `next` is the `after` of the page behind; null: there is none."""

    jobs: list[Job]
    next: int | None


class Rejection(Struct):
    index: Count
    id: str | None
    reason: str


class Stored(Struct):
    """What became of a delivery."""

    stored: Count
    duplicates: Count
    rejected: list[Rejection]
    server_ms: int
    request_id: str


class StoredReading(Struct):
    arrival: int
    reading_id: str
    device: str
    sensor: str
    value: float | None
    text: str | None
    unit: str | None
    error: str | None
    boot: str | None
    n: int | None
    at_ms: int
    clock: Literal["synced", "corrected", "estimated", "none"]
    received_at_ms: int


class ReadingPage(Struct):
    """Readings in order of arrival. `next` is the `after` of the page behind."""

    readings: list[StoredReading]
    next: int | None


class DeviceReadings(Struct):
    stored: Count
    duplicates: Count
    quarantined: Count
    missing: Count
    lost: Count


class Gap(Struct, rename={"first": "from", "last": "to"}):
    boot: str
    first: int
    last: int


class Device(Struct):
    """A board as it said it is, and what of its readings is here or missing."""

    device: str
    added_ms: int
    last_seen_ms: int | None
    silent: bool
    has_key: bool
    boot: str | None
    boots: Count
    health: dict[str, Any]
    crash: str | None
    crash_ms: int | None
    readings: DeviceReadings
    gaps: list[Gap]
    ignored: Count


class DevicePage(Struct):
    """Devices in order of name. `next` is the `after` of the page behind."""

    devices: list[Device]
    next: str | None


class Alarm(Struct):
    id: int
    kind: str
    subject: str
    detail: str
    opened_at_ms: int


class FullAlarm(Struct):
    """An alarm, open or over. `title`, `means` and `do` are the same for all of its kind.

    `times` and `last_at_ms`: how often what it tells of happened, and when last. `closed_by` is
    null for one that closed by itself; `may_be_closed`: by a person.
    """

    id: int
    kind: str
    subject: str
    detail: str
    title: str
    means: str
    do: str
    opened_at_ms: int
    last_at_ms: int
    times: Count
    may_be_closed: bool
    acknowledged_at_ms: int | None
    acknowledged_by: str | None
    note: str | None
    closed_at_ms: int | None
    closed_by: str | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> "FullAlarm":
        found = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a Row is no dict
        text = text_of(row["kind"])
        found |= {"title": text.title, "means": text.means, "do": text.do}
        found["last_at_ms"] = row["last_at_ms"] or row["opened_at_ms"]
        return cls(**found, may_be_closed=may_be_closed(row["kind"]))


class AlarmPage(Struct):
    """Alarms, the newest first. `next` is the `after` of the page behind; null: there is none."""

    alarms: list[FullAlarm]
    next: int | None


class StatusDevices(Struct):
    total: Count
    silent: Count


class StatusReadings(Struct):
    stored: Count
    duplicates: Count
    quarantined: Count
    missing: Count


class StatusJobs(Struct):
    pending: Count
    running: Count
    failed: Count
    oldest_due_ms: int | None


class Status(Struct):
    """What is true now. `headline` says it in a sentence; `ok`: nobody has to look."""

    ok: bool
    headline: str
    alarms: list[Alarm]
    devices: StatusDevices
    readings: StatusReadings
    jobs: StatusJobs
    version: str


class Problem(Struct):
    """A failure (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str


class DeviceKey(Struct):
    """A device's key, 64 hex digits. It is answered to the operator's token alone."""

    device: str
    generation: Annotated[int, Meta(ge=1)]
    key: str


class Revoked(Struct):
    """A device whose key and token are void."""

    device: str
