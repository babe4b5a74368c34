"""What MicroPython has and CPython has not, for the firmware on a simulated board."""

import asyncio
import calendar
import gc
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import IO, Any

BLOCK_BYTES = 4096
HEAP_FREE_BYTES = 100_000  # nobody counts here, and a health report needs a number
_ECONNABORTED = 113  # the ESP32's own numbers, as in port/socket.py
_EHOSTUNREACH = 118


class StandIn(ModuleType):
    """A module with some names of ours; the rest is the real one's."""

    def __init__(self, real: ModuleType, **ours: object) -> None:
        super().__init__(real.__name__)
        self._real = real
        vars(self).update(ours)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Root:
    """A folder as a board's `/`: the `os` and the `open` that the firmware sees."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self._folder = folder
        self._blocks = size_bytes // BLOCK_BYTES
        self.os = StandIn(
            os,
            listdir=lambda path="/": os.listdir(self._real(path)),
            mkdir=lambda path: os.mkdir(self._real(path)),
            remove=lambda path: os.remove(self._real(path)),
            rename=lambda old, new: os.replace(self._real(old), self._real(new)),
            rmdir=lambda path: os.rmdir(self._real(path)),
            stat=lambda path: os.stat(self._real(path)),
            statvfs=self._statvfs,
        )

    def open(self, path: str, mode: str = "r") -> IO[Any]:
        return open(self._real(path), mode)

    def _real(self, path: str) -> Path:
        return self._folder / path.lstrip("/")

    def _statvfs(self, path: str) -> tuple[int, ...]:
        used_bytes = sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())
        free = max(0, self._blocks - 2 - used_bytes // BLOCK_BYTES)
        return (BLOCK_BYTES, BLOCK_BYTES, self._blocks, free, free, 0, 0, 0, 0, 255)


def modules() -> dict[str, ModuleType]:
    """Return the modules of MicroPython that both the firmware and port/ need."""
    return {
        "asyncio": StandIn(asyncio, sleep_ms=_sleep_ms),
        "gc": StandIn(gc, mem_free=lambda: HEAP_FREE_BYTES, threshold=lambda nbytes: None),
        "sys": StandIn(
            sys, print_exception=print_exception, implementation=("simulated", sys.version_info)
        ),
        "utime": StandIn(
            time,
            ticks_us=lambda: time.monotonic_ns() // 1000,
            sleep_ms=lambda ms: time.sleep(ms / 1000),
            sleep_us=lambda us: time.sleep(us / 1_000_000),
            gmtime=lambda seconds: tuple(time.gmtime(seconds)),
            mktime=calendar.timegm,
        ),
    }


async def _sleep_ms(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


def print_exception(error: BaseException, file: IO[str] | None = None) -> None:
    traceback.print_exception(error, file=file or sys.stdout)


class Stream:
    """An asyncio connection with the face that device/post.py gives its own."""

    # network: port/network.py, which knows whether Wi-Fi is up.
    def __init__(self, ends: tuple[asyncio.StreamReader, asyncio.StreamWriter], network: Any):
        self._reader, self._writer = ends
        self._network = network
        self.write = self._writer.write

    async def drain(self) -> None:
        self._demand_wifi()
        await self._writer.drain()

    async def read(self, n: int) -> bytes:
        data = await self._reader.read(n)
        self._demand_wifi()  # what came while it was down never came
        return data

    def close(self) -> None:
        self._writer.transport.abort()

    def _demand_wifi(self) -> None:
        if not self._network.routed():
            raise OSError(_ECONNABORTED, "Wi-Fi is down")

    @classmethod
    async def connect(cls, address: Any, network: Any) -> "Stream":
        """Connect to an address as `getaddrinfo` gives it. Raises OSError."""
        if not network.routed():
            raise OSError(_EHOSTUNREACH, "Wi-Fi is down")
        return cls(await asyncio.open_connection(*address[-1]), network)
