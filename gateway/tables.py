"""The settings that are tables and stand in the TOML file only: what each takes. Pure."""

import math
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from gateway.errors import Misconfigured

Text = Annotated[str, Meta(min_length=1, max_length=255)]


class Smtp(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The server that takes our mail. `port` none: what is usual for its `tls`."""

    host: Text
    sender: Text
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    user: Text | None = None
    password: str | None = None
    tls: Literal["none", "starttls", "tls"] = "starttls"


class Correction(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a sensor's values are multiplied with, and then what is added, in the aggregates."""

    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and math.isfinite(self.offset)):
            raise ValueError("scale and offset are finite numbers")


class Webhook(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The key that our calls of other people's services are signed with."""

    key: Annotated[str, Meta(pattern=r"^([0-9a-f]{2}){16,64}$")]


class Periodic(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job to be asked for again and again."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    cron: Text
    kind: Text
    time_zone: Text = "UTC"
    args: dict[str, Any] = {}


Seconds = Annotated[float, Meta(gt=0, le=10**7)]


class Notify(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who is told of an alarm that opens, each once; and not again of its like for `quiet_s`."""

    email: list[Text] = []
    webhook: Text | None = None
    quiet_s: Annotated[float, Meta(ge=0, le=10**7)] = 3600


class Alarms(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When something is worth an alarm.

    Attributes:
        look_s: how often the rules look.
        silent_after: so many intervals without a message make a device silent.
        shortest_interval_s: nobody is watched more closely than this.
        heartbeat_s: a device that says its period sends at least a heartbeat this often.
        interval_s: by device, for those that do not do as they say.
        gap_after_s: what is missing for less may only be out of order.
        quiet_h: an event that did not happen again for so many hours is over.
    """

    look_s: Seconds = 2
    silent_after: Annotated[int, Meta(ge=1, le=1000)] = 3
    shortest_interval_s: Seconds = 10
    heartbeat_s: Seconds = 300
    interval_s: dict[str, Seconds] = {}
    stalled_after_s: Seconds = 300
    gap_after_s: Annotated[float, Meta(ge=0, le=10**7)] = 30
    disk_low_bytes: Annotated[int, Meta(ge=0, le=2**50)] = 256 * 1024**2
    clock_step_s: Seconds = 60
    quiet_h: Annotated[float, Meta(gt=0, le=10**5)] = 24
    notify: Notify = Notify()


Kept = Annotated[float, Meta(ge=1, le=36500)] | None  # for days; None: for ever


class Retention(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How long what was measured is kept; what is not named is kept for ever."""

    readings_days: Kept = None  # since they arrived
    database_bytes: Annotated[int, Meta(ge=2**24)] | None = None  # beyond it the oldest readings go
    hourly_days: Kept = None
    daily_days: Kept = None
    quarantine_days: Kept = None

    def __post_init__(self) -> None:
        kept = [days for days in (self.readings_days, self.hourly_days, self.daily_days) if days]
        if kept != sorted(kept):
            raise ValueError("keep days as long as hours, and hours as long as readings, or longer")


Calibration = dict[str, dict[str, Correction]]  # by device and sensor
Schedule = list[Periodic]


def converted(name: str, value: object, type: Any, where: str) -> Any:
    """Return the table as its type.

    Raises:
        Misconfigured: it is none; the message names the key.
    """
    try:
        found = msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        raise Misconfigured(f"{name}{path.rstrip('`')}{where}: {reason}") from error
    if type is Schedule:
        _refuse_twins(found, where)
    return found


def _refuse_twins(schedule: Schedule, where: str) -> None:
    names = [one.name for one in schedule]
    for name in names:
        if names.count(name) > 1:
            raise Misconfigured(f"schedule{where}: there are two called {name}; give each its own")
