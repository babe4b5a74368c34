"""What a delivery is made of, and its limits: docs/protocol.md, sections 1 and 2."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

MAX_READINGS = 64
MAX_AT_MS = 4_102_444_800_000  # 2100-01-01
MAX_N = 10**12 - 1  # an id with a higher n, or a longer boot, is stored without gaps
MAX_BOOT = 27

Text255 = Annotated[str, Meta(max_length=255)]
Instant = Annotated[int, Meta(ge=0, le=MAX_AT_MS)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
N = Annotated[int, Meta(ge=1, le=MAX_N)]
BootName = Annotated[str, Meta(pattern=r"\A[0-9a-f]{8}[1-9][0-9]{0,18}\Z")]
DeviceName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{1,64}\Z")]


class Part(Struct, forbid_unknown_fields=True):
    """A JSON object. What is malformed in it is ignored, unless its key is one of `strict`."""

    strict: ClassVar[frozenset[str]] = frozenset()


class Health(Part, omit_defaults=True):
    """How a device says it is. All of it optional."""

    firmware: Text255 | None = None
    reset: Text255 | None = None
    period_ms: Annotated[int, Meta(ge=1, le=2**40)] | None = None
    heap_free: Count | None = None
    fs_free: Count | None = None
    rssi: Annotated[int, Meta(ge=-200, le=200)] | None = None
    outbox: Count | None = None
    oldest_ms: Count | None = None
    dropped: Count | None = None
    dead: Count | None = None
    retries: Count | None = None
    clock: Text255 | None = None
    crash: Annotated[str, Meta(max_length=1024)] | None = None


class Lost(Part, rename={"first": "from", "last": "to"}):
    """Numbers of one boot, `first` to `last`, that the device says will never come."""

    boot: BootName
    first: N
    last: N

    strict: ClassVar[frozenset[str]] = frozenset({"boot", "from", "to"})


class Envelope(Part):
    """One delivery, its readings still as they were sent."""

    device: DeviceName
    readings: list[Raw]
    boot: BootName | None = None
    seq: N | None = None
    up_ms: Count | None = None
    sent_ms: Instant | None = None
    health: Raw = Raw()
    lost: list[Raw] | None = None

    strict: ClassVar[frozenset[str]] = frozenset({"device", "readings"})


class Reading(Part):
    """One measured value of one sensor at one instant."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    sensor: Annotated[str, Meta(min_length=1, max_length=64)]
    value: float | bool | UnsetType | None = UNSET
    text: Text255 | None = None
    error: Text255 | None = None
    unit: Annotated[str, Meta(max_length=32)] | None = None
    at_ms: Instant | None = None
    boot: BootName | None = None
    up_ms: Count | None = None

    strict: ClassVar[frozenset[str]] = frozenset({"id", "sensor", "value", "text", "error"})


class Item(NamedTuple):
    """A reading that may be stored. `boot` and `n` are its id's, None outside the grammar."""

    place: int  # from 0 in its batch
    reading: Reading
    boot: str | None
    n: int | None
    body: Raw


class Refusal(NamedTuple):
    """A reading that can never be stored, as it was sent. `id` is None if it can't be read."""

    place: int  # from 0 in its batch
    id: str | None
    reason: str
    body: str


@dataclass(slots=True)
class Batch:
    """A decoded delivery: each reading sent is an item or a refusal."""

    envelope: Envelope
    health: Health | None = None
    lost: list[Lost] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    ignored: int = 0  # malformed optional parts and unknown fields


class Delivery(NamedTuple):
    """A batch and when it came. `is_live`: its device sent it, and so is there."""

    batch: Batch
    received_ms: int
    is_live: bool = True


class Rejection(Struct):
    """One entry of the answer's `rejected`: the board goes by `index`."""

    index: int
    id: str | None
    reason: str


class Verdicts(Struct):
    """What became of a batch: stored + duplicates + len(rejected) readings were sent."""

    stored: int
    duplicates: int
    rejected: list[Rejection]
