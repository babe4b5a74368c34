"""What all tests are given: how hard hypothesis looks, and real gateways on free ports."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Condition, Thread
from typing import IO

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]
GIVE_UP_S = 30

# The same examples each time, so that `make test` says the same of the same code; what is new is
# looked for by `make campaign`, with its seed.
hypothesis.settings.register_profile("test", deadline=None, derandomize=True)
hypothesis.settings.register_profile(
    "campaign", deadline=None, max_examples=int(os.environ.get("CAMPAIGN_EXAMPLES", "1000"))
)
hypothesis.settings.load_profile("test")


class Program:
    """A module of ours in a process of its own, and what it has said so far."""

    def __init__(self, module: str, *arguments: str, environ: dict[str, str] | None = None) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("FIELDPOST_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=inherited | (environ or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self.address = ""
        self._news = Condition()
        self._at_end = 0
        streams = ((self.process.stdout, self.out), (self.process.stderr, self.err))
        self._readers = [Thread(target=self._read, args=stream, daemon=True) for stream in streams]
        for reader in self._readers:
            reader.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until a line that it says fits the pattern."""
        with self._news:
            self._news.wait_for(lambda: self._said(pattern) or self._at_end == 2, GIVE_UP_S)
        found = self._said(pattern)
        assert found, f"it never said {pattern!r}, but: {self.out} {self.err}"
        return found

    def end(self, *signals: int) -> tuple[int, str, str]:
        """Send the signals, wait for the end; return exit code, stdout, stderr."""
        for number in signals:
            self.process.send_signal(number)
        code = self.process.wait(GIVE_UP_S)
        for reader in self._readers:
            reader.join(GIVE_UP_S)
        return code, "".join(self.out), "".join(self.err)

    def kill(self) -> None:
        self.process.kill()
        self.end()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def _read(self, pipe: IO[str], said: list[str]) -> None:
        for line in pipe:
            with self._news:
                said.append(line)
                self._news.notify_all()
        with self._news:
            self._at_end += 1
            self._news.notify_all()

    def _said(self, pattern: str) -> re.Match[str] | None:
        return next(filter(None, (re.search(pattern, line) for line in self.out + self.err)), None)


@pytest.fixture
def program() -> Iterator[Callable[..., Program]]:
    """Start `python -m MODULE …`; what still runs after the test is killed."""
    started: list[Program] = []

    def start(*arguments: str, environ: dict[str, str] | None = None) -> Program:
        started.append(Program(*arguments, environ=environ))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def gateway_command(program: Callable[..., Program]) -> Callable[..., Program]:
    """Start `python -m gateway …`."""
    return partial(program, "gateway")


@pytest.fixture
def serve(gateway_command: Callable[..., Program], tmp_path: Path) -> Callable[..., Program]:
    """Start `serve` on a free port with a database in tmp_path, and wait until it listens."""

    def start(*arguments: str, environ: dict[str, str] | None = None) -> Program:
        there = ("serve", "--port", "0", "--db", str(tmp_path / "fieldpost.db"))
        gateway = gateway_command(*there, *arguments, environ=environ)
        gateway.address = gateway.wait_for(r"listening on (\S+)/ ")[1]
        return gateway

    return start
