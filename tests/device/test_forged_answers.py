"""Invented answers: a board deletes and buries nothing by one that its gateway did not give now."""

import asyncio
import gc
import hashlib
import hmac
import json
import re
from binascii import unhexlify
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from envelope import Envelope
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lost import Lost
from outbox import Outbox
from post import Post
from seal import Seal
from uplink import Uplink
from watch import Watch
from wire import record

KEY = unhexlify("9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca7")
READINGS = 3
FEW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def light_collections() -> Iterator[None]:
    """A board collects its garbage at each attempt; here that would be all of pytest's."""
    gc.freeze()
    yield
    gc.unfreeze()


class Dark:
    text = None

    def set(self, condition: str, holds: bool) -> None:
        pass

    def forget(self, sent: object) -> None:
        pass


class Line:
    """A line on which one answer comes, made from what was sent."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply
        self._sent = b""
        self._answer: bytes | None = None

    async def connect(self, address: object) -> Any:
        self._sent, self._answer = b"", None
        return self, lambda: None

    def write(self, data: bytes) -> None:
        self._sent += data

    async def drain(self) -> None:
        pass

    async def read(self, n: int) -> bytes:
        if self._answer is None:
            self._answer = self._reply(self._sent)
        found, self._answer = self._answer[:n], self._answer[n:]
        return found


def signed(status: int, body: bytes, nonce: str, retry_after: str = "") -> bytes:
    """Return an answer as the gateway would sign it."""
    digest = hashlib.sha256(body).hexdigest()
    told = f"fieldpost-answer-1\nd\n{nonce}\n{status}\n{retry_after}\n{digest}"
    signature = hmac.new(KEY, told.encode(), "sha256").hexdigest()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    lines += [f"Retry-After: {retry_after}"] if retry_after else []
    lines += [f"Fieldpost-Signature: {signature}", "Fieldpost-Protocol: 1"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def nonce_of(sent: bytes) -> str:
    found = re.search(rb'nonce="([0-9a-f]{32})"', sent)
    assert found is not None
    return found[1].decode()


def verdicts(rejected: int) -> bytes:
    told = [{"index": n, "id": None, "reason": "x"} for n in range(rejected)]
    return json.dumps(
        {"stored": READINGS - rejected, "duplicates": 0, "rejected": told, "server_ms": 1}
    ).encode()


def waiting(folder: Path) -> Outbox:
    outbox = Outbox(str(folder / "outbox"), max_bytes=1 << 20, max_count=1000, free_blocks=0)
    for n in range(1, READINGS + 1):
        outbox.put(record(f"d-7f3a17c212-{n}", "s", n, "Cel", 1764529200000))
    return outbox


def attempt(reply: Any, outbox: Outbox) -> tuple[int, int, list[Any]]:
    """Let a board make one attempt; return what is left, what is dead, and what it told."""
    told: list[Any] = []
    clock = Clock(lambda: 0, lambda a, b: a - b)
    line = Line(reply)
    nonces = iter(range(256))
    post = Post("http://127.0.0.1:9", Seal("d", KEY), lambda n: bytes([next(nonces)] * n),
                line.connect)  # fmt: skip
    envelope = Envelope("d", "7f3a17c212", clock, Lost(), Dark(), dict)
    uplink = Uplink(
        outbox, post, envelope, clock, lambda: 0.0, Watch(clock.up_ms, None), Dark(), None,
        lambda event, value: told.append((event, value)),
    )  # fmt: skip
    uplink._beat_due_ms = 1 << 60
    asyncio.run(uplink.run_once())
    return len(outbox), outbox.dead, [event for event, _ in told if event != "log"]


replies = st.sampled_from(
    [(200, verdicts(0)), (200, verdicts(2)), (422, b"{}"), (400, b"{}"), (413, b""), (503, b"{}")]
)


@st.composite
def tampered(draw: st.DrawFn) -> Any:
    """Draw what somebody on the line makes of a signed answer, keeping its form of HTTP."""
    status, body = draw(replies)
    how = draw(st.sampled_from(["body", "status", "retry", "signature", "nonce", "cut", "none"]))
    at, bit = draw(st.integers(0, 1000)), draw(st.integers(0, 7))
    other, text = draw(replies), draw(st.text("0123456789abcdef", max_size=64))

    def reply(sent: bytes) -> bytes:
        nonce = nonce_of(sent)
        real = signed(status, body, nonce)
        if how == "body":
            flipped = bytearray(body or b"x")
            flipped[at % len(flipped)] ^= 1 << bit
            return real.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + bytes(flipped)
        if how == "status":
            return real.replace(b"HTTP/1.1 %d" % status, b"HTTP/1.1 %d" % other[0], 1)
        if how == "retry":
            return real.replace(b"Fieldpost-P", b"Retry-After: %d\r\nFieldpost-P" % at, 1)
        if how == "signature":
            return re.sub(rb"(Signature: ).*", rb"\g<1>" + text.encode() + b"\r", real, count=1)
        if how == "nonce":  # a true answer to another request
            return signed(status, body, hashlib.sha256(nonce.encode()).hexdigest()[:32])
        if how == "cut":
            return real[: at % len(real)]
        return real.replace(b"Fieldpost-Signature", b"X-Signature", 1)

    return how, status, other[0], reply


@FEW
@given(drawn=tampered())
def test_an_answer_that_was_tampered_with_removes_and_buries_nothing(
    tmp_path: Path, drawn: Any
) -> None:
    how, status, other_status, reply = drawn
    assume(how != "status" or status != other_status)
    outbox = _outboxes.get(tmp_path) or _outboxes.setdefault(tmp_path, waiting(tmp_path))
    left, dead, told = attempt(reply, outbox)
    assert (left, dead) == (READINGS, 0)
    assert set(told) <= {"wait"}


# The same outbox for all examples: what one of them took away would be missing in the next.
_outboxes: dict[Path, Outbox] = {}


@pytest.mark.parametrize("rejected", [0, 2])
def test_the_same_answers_untouched_are_believed(tmp_path: Path, rejected: int) -> None:
    left, dead, _ = attempt(
        lambda sent: signed(200, verdicts(rejected), nonce_of(sent)), waiting(tmp_path)
    )
    assert (left, dead) == (0, rejected)
