"""The firmware's uplink on a serial line, against everything else that comes over it."""

import asyncio
import hashlib
import hmac
import json
import os
import re
import sys
import tty
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.device.place import KEY

HERE = Path(__file__).resolve().parent
DEVICE = HERE.parents[1] / "device"
MICROPYTHON = Path(sys.executable).parent / "micropython"
DELIVERY = re.compile(rb"\x1eFP1 (\d+) ([0-9a-f]{8}) ([^\x1e\n]*)\n")

pytestmark = pytest.mark.skipif(not MICROPYTHON.exists(), reason="NOT RUN ON MICROPYTHON")

Role = Callable[["Delivery"], Iterator[bytes]]


def framed(payload: bytes) -> bytes:
    return b"\x1eFP1 " + f"{len(payload)} {zlib.crc32(payload):08x} ".encode() + payload + b"\n"


class Delivery:
    """What the board sent, and the answers that it can get."""

    def __init__(self, payload: bytes, earlier: list["Delivery"]) -> None:
        self.told = json.loads(payload)
        self.batch = json.loads(self.told["body"])
        self.earlier = earlier

    def answer(self, status: int = 200, *, key: str = KEY, say_id: bool = True) -> bytes:
        verdicts = {"stored": len(self.batch["readings"]), "duplicates": 0, "rejected": []}
        text = json.dumps(verdicts)
        digest = hashlib.sha256(text.encode()).hexdigest()
        lines = ["fieldpost-answer-1", "d", self.nonce, str(status), "", digest]
        made = hmac.new(bytes.fromhex(key), "\n".join(lines).encode(), "sha256").hexdigest()
        answer = {"status": status, "signature": made, "retry_after": None, "body": text}
        if say_id:
            answer["id"] = self.told["id"]
        return framed(json.dumps(answer).encode())

    @property
    def nonce(self) -> str:
        return str(self.told["id"])

    def verified(self) -> bool:
        """Return whether the board signed it."""
        digest = hashlib.sha256(self.told["body"].encode()).hexdigest()
        lines = ["fieldpost-request-1", "POST", "/v1/readings", "d", self.nonce, digest]
        made = hmac.new(bytes.fromhex(KEY), "\n".join(lines).encode(), "sha256").hexdigest()
        return f'signature="{made}"' in self.told["auth"] and self.nonce in self.told["auth"]


async def drive(
    folder: Path, role: Role, **more: Any
) -> tuple[dict[str, Any], list[Delivery], str]:
    """Run the uplink with `role` at the other end; return what it did, what it sent and what it
    printed."""
    orders = {"url": "cable:", "key": KEY, "deadline_s": 1, "readings": 3, "attempts": 1} | more
    told = more.pop("at", None) or json.dumps(orders)
    master, slave = os.openpty()
    tty.setraw(slave)
    process = await asyncio.create_subprocess_exec(
        MICROPYTHON, HERE / "drive_uplink.py", DEVICE, folder, told,
        stdin=slave, stdout=slave,
    )  # fmt: skip
    os.close(slave)
    line, text, deliveries = b"", b"", []
    while data := await asyncio.to_thread(_read, master):
        line += data
        while found := DELIVERY.search(line):
            text += line[: found.start()]
            line = line[found.end() :]
            assert zlib.crc32(found[3]) == int(found[2], 16), "the board's own frame is torn"
            assert len(found[3]) == int(found[1])
            deliveries.append(Delivery(found[3], deliveries[:]))
            for piece in role(deliveries[-1]):
                os.write(master, piece)
    os.close(master)
    assert await process.wait() == 0
    *printed, did = (text + line).decode(errors="replace").splitlines()
    return json.loads(did), deliveries, "\n".join(printed)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # nobody has the other end any more
        return b""


def stores(delivery: Delivery) -> Iterator[bytes]:
    yield delivery.answer()


def stores_without_an_id(delivery: Delivery) -> Iterator[bytes]:
    yield delivery.answer(say_id=False)


def stores_byte_by_byte(delivery: Delivery) -> Iterator[bytes]:
    answer = delivery.answer()
    for at in range(len(answer)):
        yield answer[at : at + 1]


def stores_behind_noise(delivery: Delivery) -> Iterator[bytes]:
    yield b"\xff\xfe>>> \r\n\x1eFP1 9" + delivery.answer()[:-30] + b"\x1e" + delivery.answer()


def stores_behind_a_late_answer(delivery: Delivery) -> Iterator[bytes]:
    late = json.dumps({"status": 200, "id": "0" * 32, "body": "{}"}).encode()
    yield framed(late) + delivery.answer()


@pytest.mark.parametrize(
    "role",
    [stores, stores_without_an_id, stores_byte_by_byte, stores_behind_noise,
     stores_behind_a_late_answer],
)  # fmt: skip
async def test_what_is_acknowledged_on_a_cable_is_removed(role: Role, tmp_path: Path) -> None:
    did, [delivery], _ = await drive(tmp_path, role)
    assert delivery.verified()
    assert [one["id"] for one in delivery.batch["readings"]] == [
        "d-7f3a17c212-1", "d-7f3a17c212-2", "d-7f3a17c212-3",
    ]  # fmt: skip
    assert (did["left"], did["waits"]) == (0, [0])


def says_nothing(delivery: Delivery) -> Iterator[bytes]:
    yield b""


def tears_its_answer(delivery: Delivery) -> Iterator[bytes]:
    yield delivery.answer().replace(b"stored", b"st0red")


def says_half(delivery: Delivery) -> Iterator[bytes]:
    yield delivery.answer()[:-10]


def signs_with_another_key(delivery: Delivery) -> Iterator[bytes]:
    yield delivery.answer(key="00" * 32)


def echoes(delivery: Delivery) -> Iterator[bytes]:
    yield framed(json.dumps(delivery.told).encode())


def is_no_object(delivery: Delivery) -> Iterator[bytes]:
    yield framed(b"[]") + framed(b'{"status":"200","body":""}') + framed(b'{"status":200}')


@pytest.mark.parametrize(
    "role",
    [says_nothing, tears_its_answer, says_half, signs_with_another_key, echoes, is_no_object],
)
async def test_what_is_no_answer_removes_nothing_and_is_waited_for(
    role: Role, tmp_path: Path
) -> None:
    did, deliveries, _ = await drive(tmp_path, role, attempts=2)
    assert (did["left"], did["waits"]) == (3, [2000, 4000])
    assert did["told"] == []
    assert len({delivery.nonce for delivery in deliveries}) == 2


async def test_without_a_key_a_late_answer_acknowledges_nothing(tmp_path: Path) -> None:
    def comes_too_late(delivery: Delivery) -> Iterator[bytes]:
        for late in delivery.earlier:
            yield late.answer()

    did, _, _ = await drive(tmp_path, comes_too_late, attempts=2, key=None)
    assert (did["left"], did["told"]) == (3, [])


async def test_a_batch_that_fits_into_no_frame_is_sent_in_halves(tmp_path: Path) -> None:
    record = json.dumps(["d-7f3a17c212-1", "s", None, None, None, None, None, '"' * 250])
    (tmp_path / "orders.json").write_text(json.dumps({
        "url": "cable:", "key": KEY, "deadline_s": 5, "readings": 0, "attempts": 9,
        "records": [record.replace("212-1", f"212-{n}").encode().hex() for n in range(1, 31)],
    }))  # fmt: skip
    did, deliveries, _ = await drive(tmp_path, stores, at=str(tmp_path / "orders.json"))
    assert did["left"] == 0
    sizes = [len(delivery.batch["readings"]) for delivery in deliveries]
    assert sum(sizes) == 30
    assert max(sizes) <= 15
