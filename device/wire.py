# PURE: readings <-> bytes, and what an answer to them means.

import binascii
import hashlib
import json

MAX_RECORD_BYTES = 1024
MAX_BODY_BYTES = 16384
_SEPARATORS = (",", ":")
_MAX_SENSOR = 64
_MAX_TEXT = 255
_NAMES = ("unit", "at_ms", "up_ms", "error", "text")

# What to do with an answer.
STORED = "stored"  # remove all but the rejected
REFUSED = "refused"  # something in the body is at fault: send the halves
KEY = "key"  # a person has to mend it: keep everything, wait at the cap
AGAIN = "again"  # keep everything, wait


class Unreadable(Exception):
    """This record was not made by this firmware: it can be buried, never sent."""


def record(
    reading_id, sensor, value=None, unit=None, at_ms=None, up_ms=None, error=None, text=None
):
    """One reading as the outbox keeps it: a compact JSON array, trailing nulls cut."""
    value, error = _finite(value, error)
    error, text = _clean(error, _MAX_TEXT), _clean(text, _MAX_TEXT)
    fields = [reading_id, _name(sensor), value, unit, at_ms, up_ms, error, text]
    made = _pack(fields)
    if len(made) > MAX_RECORD_BYTES:  # only texts far from ASCII get here
        fields[6], fields[7] = _clean(error, 64), _clean(text, 64)
        made = _pack(fields)
    return made


def _pack(fields):
    while fields[-1] is None:
        fields.pop()
    return json.dumps(fields, separators=_SEPARATORS).encode()


def _finite(value, error):
    # JSON has no NaN, and an integer may be too large for any float.
    if value is None or isinstance(value, bool):
        return value, error
    if not isinstance(value, (int, float)):
        return None, "not a number"
    try:
        finite = float(value) - float(value) == 0
    except OverflowError:
        finite = False
    return (value, error) if finite else (None, "not a finite number")


def _name(sensor):
    # Without quotes and backslashes, so that `_value_text` finds where the name ends.
    return _clean(sensor, _MAX_SENSOR).replace('"', "'").replace("\\", "/")


def _clean(text, limit):
    if text is None:
        return None
    return "".join(c if _printable(ord(c)) else "?" for c in text[:limit])


def _printable(code):
    return code >= 32 and not 127 <= code < 160 and not 0xD800 <= code < 0xE000


def reading_id(record):
    """The id of a record. Raises Unreadable."""
    return _unpack(record)[0]


def stamp(record):
    """(at_ms, boot, up_ms) of a record: whichever stamp it bears. Raises Unreadable."""
    fields = _unpack(record)
    return fields[4], _boot(fields[0]), fields[5]


def _unpack(record):
    try:
        fields = json.loads(record)
    except ValueError:
        raise Unreadable("not JSON")
    if not isinstance(fields, list) or not 3 <= len(fields) <= 8:
        raise Unreadable("not a record")
    if not isinstance(fields[0], str) or not isinstance(fields[1], str):
        raise Unreadable("no id or no sensor")
    return fields + [None] * (8 - len(fields))


def _boot(reading_id):
    return reading_id.rsplit("-", 2)[-2] if reading_id.count("-") >= 2 else None


def reading(record):
    """The protocol's JSON for one record, as bytes. Raises Unreadable."""
    fields = _unpack(record)
    parts = ['{"id":', json.dumps(fields[0]), ',"sensor":', json.dumps(fields[1])]
    parts += [',"value":', _value_text(record)] if fields[7] is None else []
    for at, name in enumerate(_NAMES):
        field = fields[3 + at]
        if field is not None:
            if name == "up_ms":
                parts.append(',"boot":' + json.dumps(_boot(fields[0])))
            parts += [',"', name, '":', json.dumps(field)]
    parts.append("}")
    return "".join(parts).encode()


def _value_text(record):
    # The value's own digits, not parsed and printed anew: another version of MicroPython may
    # print a float otherwise, and a resent reading has to stay the same reading.
    start = record.find(b'",', record.find(b'","') + 3) + 2
    comma = record.find(b",", start)
    return record[start : comma if comma >= 0 else len(record) - 1].decode()


class Body:
    # A batch as the protocol's JSON. A small heap has no room for the whole of it beside its
    # records, so it is made piece by piece, once to be measured and once to be sent.
    # `taken` is how many of the records fitted; the rest waits for the next batch.
    def __init__(self, envelope, records, max_bytes=MAX_BODY_BYTES):
        head = json.dumps(envelope, separators=_SEPARATORS)[:-1] + ',"readings":['
        self._head = head.encode()
        self._records = records
        self._bytes = len(self._head) + 2
        self.taken = 0
        digest = hashlib.sha256(self._head)
        for _ in records:
            piece = self._piece(self.taken)
            if self._bytes + len(piece) > max_bytes:
                break
            digest.update(piece)
            self._bytes += len(piece)
            self.taken += 1
        digest.update(b"]}")
        self.sha256_hex = binascii.hexlify(digest.digest()).decode()

    def __len__(self):
        return self._bytes

    def pieces(self):
        """Its bytes in order. Each call makes the very same ones."""
        yield self._head
        for at in range(self.taken):
            yield self._piece(at)
        yield b"]}"

    def _piece(self, at):
        return (b"," if at else b"") + reading(self._records[at])


def judge(status, body, sent):
    """(action, {index: reason}, server_ms or None) of an answer that counts."""
    if status == 200:
        return _stored(body, sent) or (AGAIN, {}, None)
    if status in (400, 413, 422):
        return REFUSED, {}, None
    return (KEY if status in (401, 403) else AGAIN), {}, None


def _stored(body, sent):
    # Anything that does not add up is no answer: nothing may be removed on its word.
    try:
        answer = json.loads(body)
        rejected = {one["index"]: str(one.get("reason"))[:80] for one in answer["rejected"]}
        counts = (answer["stored"], answer["duplicates"], len(answer["rejected"]))
        server_ms = answer.get("server_ms")
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        return None
    if not isinstance(answer["rejected"], list):
        return None
    if not all(_whole(n, sent) for n in counts) or sum(counts) != sent:
        return None
    if len(rejected) != counts[2] or not all(_whole(index, sent - 1) for index in rejected):
        return None
    return STORED, rejected, server_ms if _whole(server_ms, 4102444800000) else None


def _whole(number, top):
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= top
