"""PURE: the body of `POST /v1/jobs`, judged at the front by what its kind takes."""

import hashlib
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from gateway.errors import Rejected
from gateway.kinds import Kinds
from gateway.model import Instant
from gateway.outcomes import Permanent

MAX_BYTES = 64 * 1024
MOST_PRIORITY = 1_000_000

Priority = Annotated[int, Meta(ge=-MOST_PRIORITY, le=MOST_PRIORITY)]


class Ask(Struct, forbid_unknown_fields=True):
    """A job as it is asked for. `run_at_ms` null: now."""

    kind: str
    args: dict[str, Any] = {}
    priority: Priority = 0
    run_at_ms: Instant | None = None

    def args_as_json(self) -> str:
        return msgspec.json.encode(self.args).decode()

    def fingerprint(self) -> bytes:
        """Return what two requests have in common that ask for the same."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).digest()


_decode = msgspec.json.Decoder(Ask).decode


def decode(body: bytes, kinds: Kinds) -> Ask:
    """Decode what is asked for.

    Raises:
        Rejected: 400 (not JSON), 413 (more than MAX_BYTES), 422 (no such kind, or something in
            it is not what it should be; the detail names it).
    """
    if len(body) > MAX_BYTES:
        raise Rejected(413, f"the body is larger than {MAX_BYTES} bytes")
    try:
        ask = _decode(body)
    except msgspec.ValidationError as error:
        raise Rejected(422, f"this is not how a job is asked for: {error}") from None
    except RecursionError:
        raise Rejected(400, "the body is nested too deep") from None
    except msgspec.DecodeError as error:
        raise Rejected(400, f"the body is not JSON: {error}") from None
    refuse_unfit(ask, kinds)
    return ask


def refuse_unfit(ask: Ask, kinds: Kinds) -> None:
    """Raise Rejected (422) if there is no such kind, or its args are not what it takes."""
    if ask.kind not in kinds:
        near = get_close_matches(ask.kind[:64], kinds, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        there_are = ", ".join(sorted(kinds)) or "none"
        raise Rejected(422, f"there is no kind of job {ask.kind[:64]!r}; {hint}Kinds: {there_are}")
    try:
        kinds[ask.kind].decode(ask.args_as_json())
    except Permanent as wrong:
        raise Rejected(422, str(wrong)) from None
