"""What is told while the work goes on: each step, and how long it took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    def __init__(self) -> None:
        self._began = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator["Step"]:
        """Tell of a step when it is done. One that fails is told by whoever catches the error."""
        step = Step(name)
        try:
            yield step
        except BaseException:
            step.clear()
            say(f"failed  {name}")
            raise
        step.clear()
        say(f"ok  {name}{': ' if step.found else ''}{step.found}  ({step.took_s():.1f} s)")

    def took_s(self) -> float:
        return time.monotonic() - self._began


class Step:
    def __init__(self, name: str) -> None:
        self.name = name
        self.found = ""
        self._began = time.monotonic()
        self._shown = False

    def took_s(self) -> float:
        return time.monotonic() - self._began

    def progress(self, done: int, of: int, what: str = "") -> None:
        """Show how far it is, where somebody watches."""
        if sys.stdout.isatty():
            self._shown = True
            print(f"\r\x1b[K    {self.name}: {done} of {of} {what}", end="", flush=True)

    def clear(self) -> None:
        if self._shown:
            self._shown = False
            print("\r\x1b[K", end="", flush=True)


def say(text: str) -> None:
    print(f"flash: {text}", flush=True)
