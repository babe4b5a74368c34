"""A simulated board: the firmware's own uplink, wire, seal and waits, with a memory for a flash.

Hundreds of them live in one process. What is not the firmware's here is what a board has under
it: its flash, its sensors, its network, and what goes wrong with each.
"""

import asyncio
import gc
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from tools.virtual_board.simulated import World
from tools.virtual_board.stand_ins import Root, StandIn

FIRMWARE = Path(__file__).resolve().parents[1] / "device"
SENSOR = "fleet.value"

_FLASH_BYTES = 1 << 20
# Records that no firmware makes, as a flash gone bad or a hostile client would.
POISON = (
    '["%s","fleet.value",1e999]',
    '["%s","",1]',
    '["%s","fleet.value","one"]',
    '["%s","fleet.value",null,null,null,null,null,"\\ud800"]',
)


class Firmware:
    """The firmware's files, loaded once, as modules that only the boards see."""

    def __init__(self) -> None:
        # A board has a small heap and cleans it before each attempt; this process need not.
        collector: ModuleType = StandIn(gc, collect=lambda: None)
        flash = Root(Path(tempfile.gettempdir()), _FLASH_BYTES)  # nothing is ever put there
        world = World(FIRMWARE, flash, gc=collector, socket=socket)
        for name in ("boots", "clock", "envelope", "lost", "post", "seal", "uplink", "wire"):
            setattr(self, name, world.load(name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@dataclass(frozen=True)
class Faults:
    """How much goes wrong, in per cent: of attempts, of batches, of readings."""

    outage: float = 0.0
    duplicates: float = 0.0
    poison: float = 0.0


@dataclass
class Diary:
    """What a board knows of itself at the end; ids by what became of them."""

    taken: dict[str, int] = field(default_factory=dict)  # id -> the true instant, ms
    poison: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    waits_ms: list[int] = field(default_factory=list)
    exchanges_ms: list[float] = field(default_factory=list)
    answered_at: list[float] = field(default_factory=list)  # monotonic seconds
    duplicates: int = 0
    faults: list[str] = field(default_factory=list)

    def tell(self, event: str, value: Any) -> None:
        """Take what the firmware says of itself."""
        match event:
            case "acked":
                self.acknowledged.update(value)
            case "dead":
                self.dead.add(value)
            case "wait":
                self.waits_ms.append(value[0])


class Memory:
    """An outbox without a flash under it; it has the face of device/outbox.py."""

    dropped = 0

    def __init__(self) -> None:
        self.dead = 0
        self._records: dict[int, bytes] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: bytes) -> None:
        self._records[self._next] = record
        self._next += 1

    def batch(self, count: int, nbytes: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        for key, record in self._records.items():
            nbytes -= len(record)
            if found and (len(found) >= count or nbytes < 0):
                break
            found.append((key, record))
        return found

    def remove(self, keys: list[int]) -> None:
        for key in keys:
            self._records.pop(key, None)

    def bury(self, key: int, reason: str) -> None:
        self.dead += self._records.pop(key, None) is not None

    def ids(self, wire: Any) -> set[str]:
        return {wire.reading_id(record) for record in self._records.values()}


class Patience:
    """Stands in for the watchdog: nobody is reset here."""

    def back_in(self, who: str, ms: int) -> None:
        pass

    async def sleep(self, who: str, ms: int) -> None:
        await asyncio.sleep(ms / 1000)


class Dark:
    """No LED."""

    def set(self, condition: str, holds: bool) -> None:
        pass

    async def again(self) -> None:
        pass


class NoCrash:
    text = None

    def forget(self, text: str | None) -> None:
        pass


class Board:
    """One board.

    Args:
        key: 32 bytes, or None for a gateway in open mode.
        boot: of its ids; two boards with the same name and boot are clones.
        random: plans its faults and draws its waits.
        jitter: False makes all its waits as short as they can be, as if nobody had thought of it.
        clock_off_ms: its clock is wrong by so much, and believes itself.
    """

    def __init__(
        self, firmware: Firmware, name: str, key: bytes | None, gateway: str, boot: str,
        random: Random, *, faults: Faults = Faults(), jitter: bool = True, clock_off_ms: int = 0,
    ) -> None:  # fmt: skip
        self.name = name
        self.diary = Diary()
        self._firmware = firmware
        self._random = random
        self._faults = faults
        self._outbox = Memory()
        self._news = asyncio.Event()
        self._ids = firmware.boots.Ids(name, boot)
        self._clock = firmware.clock.Clock(_ticks_ms, lambda late, early: late - early)
        if clock_off_ms:
            self._clock.learn(_now_ms() + clock_off_ms, firmware.clock.NTP)
        seal = firmware.seal.Seal(name, key)
        self._post = firmware.post.Post(gateway, seal, os.urandom, _connect)
        lost = firmware.lost.Lost()
        envelope = firmware.envelope.Envelope(name, boot, self._clock, lost, NoCrash(), dict)
        draw = random.random if jitter else lambda: 0.0
        self._uplink = firmware.uplink.Uplink(
            self._outbox, self, envelope, self._clock, draw, Patience(), Dark(), self._news,
            self.diary.tell,
        )  # fmt: skip

    async def sample(self, period_s: float) -> None:
        """Take readings until cancelled."""
        await asyncio.sleep(self._random.uniform(0, period_s))
        while True:
            self.take()
            await asyncio.sleep(period_s)

    async def deliver(self, within_s: float) -> None:
        """Begin within so many seconds to bring them to the gateway, until cancelled."""
        await asyncio.sleep(self._random.uniform(0, within_s))
        await self._uplink.run()

    def waiting(self) -> set[str]:
        return self._outbox.ids(self._firmware.wire)

    # The line, as the uplink sees it.

    def up(self) -> bool:
        return True

    async def exchange(self, body: Any) -> Any:
        fate = self._random.uniform(0, 100)
        if fate < self._faults.outage / 2:
            raise OSError("the network is away")
        began = time.monotonic()
        answer = await self._post.exchange(body)
        self.diary.exchanges_ms.append((time.monotonic() - began) * 1000)
        if fate < self._faults.outage:
            raise OSError("the answer is lost")
        if answer.status == 200:
            self.diary.answered_at.append(time.monotonic())
            self._count(answer)
            if self._random.uniform(0, 100) < self._faults.duplicates:
                await self._send_again(body)
        return answer

    async def _send_again(self, body: Any) -> None:
        try:
            answer = await self._post.exchange(body)
        except OSError:
            return
        if answer.status == 200:
            if stored := _verdicts(answer)["stored"]:
                self.diary.faults.append(f"{self.name}: {stored} stored twice")
            self._count(answer)

    def _count(self, answer: Any) -> None:
        self.diary.duplicates += _verdicts(answer)["duplicates"]

    def take(self) -> None:
        reading_id = self._ids.next()
        at_ms = self._clock.now_ms()
        up_ms = self._clock.up_ms() if at_ms is None else None
        value = round(self._random.uniform(0, 100), 2)
        record = self._firmware.wire.record(reading_id, SENSOR, value, "Cel", at_ms, up_ms)
        if self._random.uniform(0, 100) < self._faults.poison:
            record = (self._random.choice(POISON) % reading_id).encode()
            self.diary.poison.add(reading_id)
        self.diary.taken[reading_id] = _now_ms()
        self._outbox.put(record)
        self._news.set()


def _verdicts(answer: Any) -> Any:
    return json.loads(answer.body)


def _ticks_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Stream:
    """A connection with the face that device/post.py asks for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.read = reader.read
        self.write = writer.write
        self.drain = writer.drain


async def _connect(address: Any) -> tuple[_Stream, Callable[[], None]]:
    reader, writer = await asyncio.open_connection(*address[-1][:2])
    return _Stream(reader, writer), writer.transport.abort
