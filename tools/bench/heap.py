"""`python -m tools.bench heap`: the smallest heap in which the firmware lives through an outage.

With each heap that is tried a virtual board, which signs what it sends, delivers to a real gateway,
takes 500 readings while that is away, and delivers them when it is back. A heap is large enough if
every reading arrives: none lost for want of memory, none dropped, and no reset.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway import listener, registry
from gateway.config import Config
from tools.children import Child, Children

MOST_KIB = 192
STEP_KIB = 8
WIDEST_KIB = 768  # beyond this something else than the heap is wrong
OUTAGE_READINGS = 500
PERIOD_MS = 10
LOOK_S = 0.1
PATIENCE_S = 90.0
BOARD = "bench-heap"


class Failed(Exception):
    """This heap is too small."""


class Story:
    """One board's life with one heap; everything it does is known from its trace."""

    def __init__(self, folder: Path, heap_kib: int, children: Children) -> None:
        self._folder = folder
        self._heap_kib = heap_kib
        self._children = children
        with listener.bind("127.0.0.1", 0) as free:
            self._port = free.getsockname()[1]
        self._config = Config(db=str(folder / "fieldpost.db"), port=self._port)
        self._trace = folder / "trace"
        self._running: list[Child] = []

    async def play(self) -> None:
        """Raise Failed if the board does not deliver all that it took."""
        gateway = await self._start_gateway()
        board = await self._start_board()
        await self._until(lambda: len(self._told("acked")) > 0)
        self._running = [board]
        gateway.process.kill()
        await gateway.process.wait()
        taken = len(self._told("put")) + OUTAGE_READINGS
        await self._until(lambda: len(self._told("put")) >= taken)
        await self._start_gateway()
        await self._until(lambda: self._acked() >= set(self._told("put")[:taken]))
        numbers = [int(one.rpartition("-")[2]) for one in self._told("put")]
        if numbers != list(range(1, len(numbers) + 1)):
            raise Failed("readings were lost")

    async def _start_gateway(self) -> Child:
        return await self._start(
            "gateway",
            *("-m", "gateway", "serve", "--db", self._config.db, "--port", self._port),
        )

    async def _start_board(self) -> Child:
        key = await registry.add(self._config, BOARD)
        return await self._start(
            "board",
            *("-m", "tools.virtual_board", "--device", BOARD, "--key", key),
            *("--gateway", f"http://127.0.0.1:{self._port}", "--period-ms", PERIOD_MS),
            *("--flash", self._folder / "board.img", "--trace", self._trace),
            *("--heap", f"{self._heap_kib}K"),
        )

    async def _start(self, name: str, *arguments: object) -> Child:
        silent = asyncio.subprocess.DEVNULL
        child = await self._children.start(name, *arguments, stdout=silent, stderr=silent)
        self._running.append(child)
        return child

    async def _until(self, reached: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not reached():
                    self._all_alive()
                    if len(self._told("reset")) > 1 or self._told("dropped"):
                        raise Failed("it did not live through it")
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise Failed("it did not deliver in time") from None

    def _all_alive(self) -> None:
        for child in self._running:
            if child.process.returncode is not None and child.name == "board":
                raise Failed("it does not even start")
            if child.process.returncode is not None:
                raise SystemExit("bench heap: the gateway ended by itself")

    def _acked(self) -> set[str]:
        return {one for ids in self._told("acked") for one in ids}

    def _told(self, event: str) -> list[Any]:
        with contextlib.suppress(FileNotFoundError):
            whole = self._trace.read_text().rpartition("\n")[0]
            lines = map(json.loads, whole.splitlines())
            return [line[event] for line in lines if event in line]
        return []


async def enough(heap_kib: int) -> bool:
    """Return whether the firmware lives through the story with this heap."""
    # Below the present folder: /tmp may be in memory, and databases belong on a disk.
    with tempfile.TemporaryDirectory(prefix=".bench-heap-", dir=".") as folder:
        async with Children() as children:
            try:
                await Story(Path(folder), heap_kib, children).play()
            except Failed as why:
                print(f"{heap_kib} KiB: too small: {why}", flush=True)
                return False
    print(f"{heap_kib} KiB: enough", flush=True)
    return True


async def smallest() -> int | None:
    """Return the smallest heap that is enough, in KiB, to a step of 8; None if none is."""
    low, high = 0, MOST_KIB
    while not await enough(high):
        low, high = high, high * 2
        if high > WIDEST_KIB:
            return None
    while high - low > STEP_KIB:
        middle = (low + high) // 2 // STEP_KIB * STEP_KIB
        if await enough(middle):
            high = middle
        else:
            low = middle
    return high


def main(argv: list[str]) -> int:
    """Return 0 only if the smallest heap is within its target."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench heap", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    found = asyncio.run(smallest())
    print(f"smallest heap: {found} KiB (target: at most {MOST_KIB})")
    if args.json:
        print(json.dumps({"smallest_heap_kib": found}))
    return 0 if found is not None and found <= MOST_KIB else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
