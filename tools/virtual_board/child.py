"""The process in which a board lives, and the one place that has its standard streams.

Its stdout is the board's log. Its stderr carries marked lines for the supervisor; what else
appears there, an interpreter's last words, is log too. Its stdin says nothing, and only ends;
unless there is a terminal: then it is the keyboard, stdout goes to the screen, and another pipe
only ends.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import IO, NamedTuple

from tools.virtual_board.terminal import Terminal

ORDERS = "VIRTUAL_BOARD_ORDERS"  # an environment variable: others can not read it, unlike arguments
INTERRUPT = signal.SIGTERM if sys.platform == "win32" else signal.SIGUSR1
MARK = b"\x1e"
LAST_WORDS_S = 2.0
_STDIN = 0
LOG_PATIENCE_S = 0.2
_output = threading.Lock()


class Said(NamedTuple):
    """What a child told; `ended` is its last word."""

    child: "Child"
    what: str
    value: object = None


class Child:
    def __init__(
        self,
        command: Sequence[str],
        orders: Mapping[str, object],
        heard: "SimpleQueue[Said]",
        fds: Sequence[int] = (),
        terminal: Terminal | None = None,
    ) -> None:
        self._heard = heard
        self._terminal = terminal
        # Its stdin does for a lifeline as long as nobody types on it.
        self._lifeline: int | None
        lifeline, self._lifeline = (_STDIN, None) if terminal is None else os.pipe()
        told = json.dumps({**orders, "lifeline_fd": lifeline})
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**os.environ, ORDERS: told, "TZ": "UTC"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=fds if terminal is None else (*fds, lifeline),
            start_new_session=True,  # Ctrl-C goes to the terminal's whole group, and is ours
        )
        assert self._process.stdin is not None
        self._keyboard = self._process.stdin.fileno()
        if terminal is not None:
            os.close(lifeline)
            os.set_blocking(self._keyboard, False)
        pumps = ((self._relay, self._process.stdout), (self._listen, self._process.stderr))
        # Daemons: a log that nobody reads must not hold us up when we are told to stop.
        self._pumps = [
            threading.Thread(target=pump, args=(way,), daemon=True) for pump, way in pumps
        ]
        for thread in self._pumps:
            thread.start()

    def end(self) -> None:
        """Cut its power, and wait until all that it had said is passed on, if anyone reads."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
        for thread in self._pumps:
            thread.join(LAST_WORDS_S)

    def exit_code(self) -> int:
        """Wait for a child that has ended by itself; negative: the signal that ended it."""
        return self._process.wait()

    def type(self, data: bytes) -> None:
        """Give it this on stdin; what it has no room for is lost, as in a board's buffer."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self._keyboard, data)

    def interrupt(self) -> None:
        self._process.send_signal(INTERRUPT)

    def _relay(self, stdout: IO[bytes]) -> None:
        if self._terminal is None:
            _relay_lines(stdout)
            return
        with stdout:
            while chunk := os.read(stdout.fileno(), 65536):
                self._terminal.write(chunk)

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            for line in stderr:
                if not (line.startswith(MARK) and self._understood(line[len(MARK) :])):
                    _log(line)
        self._heard.put(Said(self, "ended"))

    def _understood(self, line: bytes) -> bool:
        try:
            for what, value in json.loads(line).items():
                self._heard.put(Said(self, what, value))
        except (ValueError, AttributeError):
            return False  # the firmware's own, whatever it is
        return True


def _relay_lines(stdout: IO[bytes]) -> None:
    # Whole lines only: the firmware prints in pieces, and its stderr must not fall between them.
    line = b""
    with stdout:
        while chunk := os.read(stdout.fileno(), 65536):
            whole, newline, line = (line + chunk).rpartition(b"\n")
            _log(whole + newline)
        _log(line)


def _log(data: bytes) -> None:
    # Past Python's buffer: its lock would be in the way of our end. A log that is closed stops
    # neither the board nor its trace.
    with _output, contextlib.suppress(OSError):
        while data and _somebody_reads():
            data = data[os.write(sys.stdout.fileno(), data[: select.PIPE_BUF]) :]


def _somebody_reads() -> bool:
    """Return whether our stdout takes more. What nobody reads is lost, as on a serial line."""
    if sys.platform == "win32":
        return True  # no select on a pipe there
    return bool(select.select([], [sys.stdout], [], LOG_PATIENCE_S)[1])
