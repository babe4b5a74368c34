"""Bytes to a Batch: the whole body is refused for its form only, else each reading is judged alone.

Pure. Each object is decoded at one go where it is well formed, and field by field where it is not.
"""

import re
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from gateway.errors import Rejected
from gateway.model import (
    MAX_BOOT,
    MAX_N,
    MAX_READINGS,
    Batch,
    Envelope,
    Health,
    Item,
    Lost,
    Part,
    Reading,
    Refusal,
)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_GRAMMAR = re.compile(r"([A-Za-z0-9_.-]{1,64})-([0-9a-f]{8}[1-9][0-9]*)-([1-9][0-9]*)")

_REASONS = {
    None: "reading is not an object",
    "id": "id is not 1 to 128 characters without control characters",
    "sensor": "sensor is not 1 to 64 characters without control characters",
    "value": "value is not a finite number",
    "text": "text is not at most 255 characters without control characters",
    "error": "error is not at most 255 characters without control characters",
    "content": "exactly one of value, text, and error with a null value is needed",
    "device": "id belongs to another device",
}

P = TypeVar("P", bound=Part)


class _Malformed(Exception):
    """The field (None: the object itself) for which a part can not be read."""

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.name = name


def decode(body: bytes) -> Batch:
    """Decode the JSON of `POST /v1/readings`.

    Raises:
        Rejected: 400 (not JSON, not UTF-8, nested too deep), 413 (more than 64 readings),
            422 (no object, `device` malformed, `readings` no list).
    """
    try:
        body.decode()  # msgspec does not look at the UTF-8 of what it passes over
        return _batch(body)
    except UnicodeDecodeError:
        raise Rejected(400, "the body is not UTF-8") from None
    except RecursionError:
        raise Rejected(400, "the body is nested too deep") from None
    except msgspec.DecodeError as error:
        raise Rejected(400, f"the body is not JSON: {error}") from None


def parse_id(reading_id: str) -> tuple[str, str, int] | None:
    """Return (device, boot, n) of an id in the grammar, read from the right; else None."""
    match = _GRAMMAR.fullmatch(reading_id)
    if match is None or len(match[2]) > MAX_BOOT or len(match[3]) > len(str(MAX_N)):
        return None
    return match[1], match[2], int(match[3])


def _batch(body: bytes) -> Batch:
    try:
        envelope, ignored = _read(Envelope, body)
    except _Malformed as bad:
        _ANYTHING.decode(body)  # what is not JSON at all is told so
        what = {None: "the body is not an object", "readings": "readings is not a list"}
        wrong = what.get(bad.name, "device is not 1 to 64 characters of A-Z a-z 0-9 _ . -")
        raise Rejected(422, wrong) from None
    if len(envelope.readings) > MAX_READINGS:
        raise Rejected(413, f"more than {MAX_READINGS} readings: send them in several batches")
    batch = Batch(envelope, ignored=ignored)
    if bytes(envelope.health) not in (b"", b"null"):
        batch.health = _optional(Health, envelope.health, batch)
    for raw in envelope.lost or ():
        lost = _optional(Lost, raw, batch)
        if lost is not None and lost.first <= lost.last:
            batch.lost.append(lost)
        elif lost is not None:
            batch.ignored += 1
    # Without an escape, DEL or anything beyond ASCII there is no control character in any string.
    clean = body.isascii() and b"\\" not in body and b"\x7f" not in body
    for place, raw in enumerate(envelope.readings):
        _judge(place, raw, batch, clean)
    return batch


def _judge(place: int, raw: Raw, batch: Batch, clean: bool) -> None:
    try:
        reading, ignored = _read(Reading, raw)
        if not clean:
            ignored += _check_characters(reading)
        if reading.value is UNSET:
            if reading.error is not None:  # it stands for a value that is null, and says so
                raise _Malformed("content")
            reading.value = None
        if (reading.value, reading.text, reading.error).count(None) != 2:
            raise _Malformed("content")
        device, boot, n = parse_id(reading.id) or (None, None, None)
        if device not in (None, batch.envelope.device):
            raise _Malformed("device")
    except _Malformed as bad:
        refusal = Refusal(place, _readable_id(raw), _REASONS[bad.name], bytes(raw).decode())
        batch.refusals.append(refusal)
    else:
        batch.ignored += ignored
        batch.items.append(Item(place, reading, boot, n, raw))


def _check_characters(reading: Reading) -> int:
    for name in ("id", "sensor", "text", "error"):
        if _has_control(getattr(reading, name)):
            raise _Malformed(name)
    if not _has_control(reading.unit):
        return 0
    reading.unit = None
    return 1


def _has_control(text: str | None) -> bool:
    return text is not None and _CONTROL.search(text) is not None


def _optional(cls: type[P], raw: Raw, batch: Batch) -> P | None:
    try:
        part, ignored = _read(cls, raw)
    except _Malformed:
        batch.ignored += 1
        return None
    batch.ignored += ignored
    return part


def _read(cls: type[P], raw: bytes | Raw) -> tuple[P, int]:
    """Return the part and how many fields of it were ignored."""
    try:
        return _DECODERS[cls].decode(raw), 0
    except msgspec.ValidationError:
        return _read_fields(cls, raw)


def _read_fields(cls: type[P], raw: bytes | Raw) -> tuple[P, int]:
    try:
        sent = _OBJECT.decode(raw)
    except msgspec.ValidationError:
        raise _Malformed(None) from None
    good: dict[str, Any] = {}
    ignored = 0
    for field in msgspec.structs.fields(cls):
        name = field.encode_name
        try:
            if name in sent:
                good[field.name] = msgspec.json.decode(sent.pop(name), type=field.type)
            elif field.required:
                raise _Malformed(name)
        except msgspec.ValidationError:
            if name in cls.strict:
                raise _Malformed(name) from None
            ignored += 1
    return cls(**good), ignored + len(sent)


class _OnlyId(Struct):
    id: Raw = Raw()


def _readable_id(raw: Raw) -> str | None:
    try:
        found = msgspec.json.decode(msgspec.json.decode(raw, type=_OnlyId).id, type=str)
    except msgspec.DecodeError:
        return None
    return found if 1 <= len(found) <= 128 and not _has_control(found) else None


_ANYTHING = msgspec.json.Decoder(Raw)
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_DECODERS: dict[type[Part], msgspec.json.Decoder[Any]] = {
    cls: msgspec.json.Decoder(cls) for cls in (Health, Lost, Envelope, Reading)
}
