"""How the process stops: the first signal asks, the second ends it, a hang is ended too."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)

# A stop may take 10 s. This ends a process that hangs in spite of all the smaller bounds.
LAST_RESORT_S = 9.5


def on_signals() -> asyncio.Event:
    """Return the event that the first SIGTERM or SIGINT sets; a second one ends the process."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def first() -> None:
        stopping.set()
        for number in SIGNALS:
            # Not by way of the loop: it may be what does not come to an end.
            signal.signal(number, _second)
        _end_later()

    for number in SIGNALS:
        _listen(loop, number, first)
    return stopping


def _listen(loop: asyncio.AbstractEventLoop, number: int, act: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))


def _second(_number: int, _frame: FrameType | None) -> None:
    # Nothing acknowledged is lost by this: it was on the disk before its answer left.
    _end(0, b"fieldpost: stopped at once\n")


def _end_later() -> None:
    timer = threading.Timer(
        LAST_RESORT_S, _end, (1, b"fieldpost: ended, though something did not come to an end\n")
    )
    timer.daemon = True
    timer.start()


def _end(code: int, words: bytes) -> None:
    os.write(2, words)
    os._exit(code)
