"""Boards on a cable: each port is opened, listened to, given up when asked for, opened again.

A port that can not be had, or that breaks, is waited for as a board waits for its gateway. While
somebody holds the port's lock (`make flash` does) it is his.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from serial.tools import list_ports

from gateway import backoff, frames
from gateway.port_lock import PortLock
from gateway.serial_line import Line
from gateway.web.front import Answer, Front

log = logging.getLogger(__name__)

AUTO = "auto"
LOOK_EVERY_S = 2.0  # for boards that were plugged in
LOCK_EVERY_S = 0.5  # within 2 s of being asked for, a port must be closed
AGAIN_S = 5.0
LOG_LINES_PER_S = 20  # of what a board prints; a burst may be twice as many

WaitMs = Callable[[int], int]


def _usual_wait_ms(failures: int) -> int:
    return backoff.wait_ms(failures, random.random)


class Port:
    """One port, for as long as it is wanted.

    Args:
        device: `/dev/ttyUSB0`, `COM3`.
        wait_ms: failures in a row -> how long to wait before it is opened again.
    """

    def __init__(
        self, device: str, front: Front, lock: PortLock, wait_ms: WaitMs = _usual_wait_ms
    ) -> None:
        self._device = device
        self._front = front
        self._lock = lock
        self._wait_ms = wait_ms
        self._allowance = Allowance()
        self._trouble = ""
        self._failures = 0

    async def run(self) -> None:
        """Attend to the port until cancelled."""
        while True:
            await self._until_lock(held=False)
            if await self.run_once():
                self._failures += 1
                await asyncio.sleep(self._wait_ms(self._failures) / 1000)

    async def run_once(self) -> bool:
        """Open the port and listen; return False if it was given up to whoever asked for it."""
        try:
            line = await Line.open(self._device)
        except OSError as error:
            self._note(f"can not be opened: {error}")
            return True
        self._note("")
        listening = asyncio.create_task(self._listen(line))
        asked_for = asyncio.create_task(self._until_lock(held=True))
        try:
            await asyncio.wait({listening, asked_for}, return_when=asyncio.FIRST_COMPLETED)
            is_given_up = asked_for.done()
        finally:
            for task in (listening, asked_for):
                task.cancel()
            await asyncio.gather(listening, asked_for, return_exceptions=True)
            await line.close()
        self._note("given up to a tool that holds its lock" if is_given_up else "is gone")
        return not is_given_up

    async def _listen(self, line: Line) -> None:
        splitter, lines = frames.Splitter(), frames.Lines()
        while came := await line.read():
            self._failures = 0
            for part in splitter.feed(came):
                if isinstance(part, frames.Payload):
                    # One after the other: a board waits for its answer before it sends again.
                    line.write(await self._answered(part.json))
                else:
                    self._pass_on(lines.feed(part))

    async def _answered(self, payload: bytes) -> bytes:
        """Return the frame that answers the JSON of this one."""
        try:
            delivery = frames.delivery(payload)
        except frames.Unreadable as unreadable:
            return _framed(self._front.refuse(str(unreadable)), None)
        body = delivery.body.encode()
        answer = await self._front.answer(delivery.auth or None, body, self._device)
        return _framed(answer, delivery.id)

    async def _until_lock(self, *, held: bool) -> None:
        while self._lock.is_held() is not held:  # noqa: ASYNC110 a lock of files tells nobody
            await asyncio.sleep(LOCK_EVERY_S)

    def _pass_on(self, lines: Iterable[str]) -> None:
        for line in lines:
            left_out = self._allowance.left_out()
            if left_out is not None:
                beyond = f" (after {left_out} lines that are not shown)" if left_out else ""
                log.info("%s says: %s%s", self._device, line, beyond)

    def _note(self, trouble: str) -> None:
        """Log what is new about the port; the same again is not worth a line."""
        if trouble != self._trouble or not trouble:
            log.info("serial port %s %s", self._device, trouble or "is open")
        self._trouble = trouble


class Allowance:
    """How much of a board's talk goes into the log."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._left = 2.0 * LOG_LINES_PER_S
        self._at = monotonic()
        self._left_out = 0

    def left_out(self) -> int | None:
        """Ask for one more line: None if it is one too many, else how many were before it."""
        now = self._monotonic()
        gained = (now - self._at) * LOG_LINES_PER_S
        self._left, self._at = min(2.0 * LOG_LINES_PER_S, self._left + gained), now
        if self._left < 1:
            self._left_out += 1
            return None
        self._left -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class Ports:
    """All ports that were named, and with `auto` those that are plugged in.

    Args:
        folder: where the locks of ports stand.
        plugged_in: returns the devices that are there.
    """

    def __init__(
        self,
        named: Sequence[str],
        front: Front,
        folder: Path,
        *,
        plugged_in: Callable[[], set[str]] | None = None,
        wait_ms: WaitMs = _usual_wait_ms,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._named = {name for name in named if name != AUTO}
        self._is_auto = AUTO in named
        self._front = front
        self._folder = folder
        self._plugged_in = plugged_in or usb_ports
        self._wait_ms = wait_ms
        self._look_every_s = look_every_s
        self._attending: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Attend to them until cancelled; then all are closed."""
        try:
            while True:
                await self._follow(self._named | await self._found())
                await asyncio.sleep(self._look_every_s)
        finally:
            await self._follow(set())

    async def _found(self) -> set[str]:
        return await asyncio.to_thread(self._plugged_in) if self._is_auto else set()

    async def _follow(self, wanted: set[str]) -> None:
        leaving = [self._attending.pop(name) for name in self._attending.keys() - wanted]
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        for name in wanted - self._attending.keys():
            self._attending[name] = asyncio.create_task(self._attend(name))

    async def _attend(self, name: str) -> None:
        while True:
            try:
                lock = PortLock(self._folder, name)
                await Port(name, self._front, lock, self._wait_ms).run()
            except Exception:
                log.exception("serial port %s: it begins again in %g s", name, AGAIN_S)
            await asyncio.sleep(AGAIN_S)


def usb_ports() -> set[str]:
    """Return the ports of USB devices. Others, such as a PC's own, hold no board by themselves."""
    return {port.device for port in list_ports.comports() if port.vid is not None}


@asynccontextmanager
async def attended(ports: Ports) -> AsyncIterator[None]:
    """Attend to the ports inside the block."""
    task = asyncio.create_task(ports.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _framed(answer: Answer, request: str | None) -> bytes:
    status, body, retry_after, signature = answer
    id = msgspec.UNSET if request is None else request
    return frames.answer(frames.Answer(status, signature, retry_after, body.decode(), id))
