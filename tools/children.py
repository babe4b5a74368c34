"""Child processes that never outlive us: stopped together, and ended with us if we are killed."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

PR_SET_PDEATHSIG = 1  # linux/prctl.h
STOP_TIMEOUT_S = 9.0


class Child(NamedTuple):
    name: str
    process: asyncio.subprocess.Process


class Children:
    """`async with Children() as children`: on the way out all that still run are stopped."""

    def __init__(self) -> None:
        self._all: list[Child] = []

    async def __aenter__(self) -> "Children":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, name: str, *arguments: object, **streams: Any) -> Child:
        """Start this Python with the arguments; `streams` as for `create_subprocess_exec`."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *map(str, arguments),
            stdin=asyncio.subprocess.DEVNULL,
            # Ctrl-C goes to the terminal's whole group; our children get one signal, from us.
            start_new_session=True,
            preexec_fn=_tied_to(os.getpid()),
            **streams,
        )
        self._all.append(Child(name, process))
        return self._all[-1]

    async def first_to_end(self) -> Child:
        """Wait until one of them ends, and return it."""
        waits = {asyncio.create_task(child.process.wait()): child for child in self._all}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return waits[done.pop()]
        finally:
            for wait in waits:
                wait.cancel()

    async def stop(self) -> None:
        """Ask all to stop, wait for them, and kill those that do not within `STOP_TIMEOUT_S`."""
        running = [child.process for child in self._all if child.process.returncode is None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await asyncio.gather(*(process.wait() for process in running))
        except TimeoutError:
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


def _tied_to(parent: int) -> Callable[[], None] | None:
    """Return what the child does before it runs: ask the kernel to be told when we are gone."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(
        None
    ).prctl  # looked up here: the forked child should do as little as it can

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # gone before the kernel knew whom to tell
            os._exit(1)

    return tie
