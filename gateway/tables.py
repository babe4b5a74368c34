"""The settings that are tables and stand in the TOML file only: what each takes. Pure."""

import math
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from gateway.errors import Misconfigured

Text = Annotated[str, Meta(min_length=1, max_length=255)]


class Smtp(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The server that takes our mail."""

    host: Text
    sender: Text
    port: Annotated[int, Meta(ge=1, le=65535)] = 587
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
