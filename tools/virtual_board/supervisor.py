"""Keeps a board alive: what on a real one is its power supply, its RTC and its watchdog."""

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, NoReturn

from tools.virtual_board.child import Child, Said
from tools.virtual_board.refused import Refused
from tools.virtual_board.terminal import Console

# A feed may still be on its way through the pipe when the watchdog's time is up.
WATCHDOG_GRACE_S = 0.25
# A board that lives for a shorter time than this is not started again at full speed.
CALM_S = 5.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
_FRIENDLY = "friendly"
_LOOK_S = 1.0  # some platforms deliver no Ctrl-C to a longer wait


class Counter(NamedTuple):
    """Microseconds that go on while the board's process does not."""

    us: int
    at_ns: int

    @classmethod
    def at(cls, us: int) -> "Counter":
        return cls(us, time.monotonic_ns())

    def now(self) -> int:
        return self.us + (time.monotonic_ns() - self.at_ns) // 1000


class Supervisor:
    # command: module and arguments of the child; orders: what stays the same in all its lives.
    def __init__(
        self,
        command: Sequence[str],
        orders: dict[str, object],
        ticks_start: int,
        fds: Sequence[int] = (),
        console: Console | None = None,
    ) -> None:
        self._command = command
        self._orders = orders
        self._ticks_start = ticks_start
        self._fds = fds
        self._console = console
        self._repl = _FRIENDLY
        self._at_repl = False
        self._heard: SimpleQueue[Said] = SimpleQueue()
        self._memory: object = ""
        self._rtc = Counter.at(0)  # no battery: the time starts at the port's epoch
        self._ticks = Counter.at(0)
        self._watchdog_s: float | None = None
        self._fed_at = 0.0

    def run(self) -> NoReturn:
        """Run the board until a signal handler raises.

        Raises:
            Refused: it can not be run at all.
        """
        cause, soon = "power", 0
        while True:
            began = time.monotonic()
            cause = self._live(cause)
            # Whoever sits at the REPL is not kept waiting for a reset.
            short = time.monotonic() - began < CALM_S and not self._at_repl
            soon = soon + 1 if short else 0
            time.sleep(pause_s(soon))

    def _live(self, cause: str) -> str:
        """Run one life of the board; return what ended it."""
        self._at_repl = False
        if cause != "soft":  # which resets the interpreter only, not the chip
            self._repl = _FRIENDLY
            self._ticks = Counter.at(self._ticks_start * 1000)
            self._watchdog_s = None
        terminal = self._console.terminal if self._console else None
        child = Child(self._command, self._orders_for(cause), self._heard, self._fds, terminal)
        try:
            if self._console:
                self._console.attach(child)
            return self._follow(child)
        finally:
            if self._console:
                self._console.detach()
            child.end()

    def _orders_for(self, cause: str) -> dict[str, object]:
        return {
            **self._orders,
            "cause": cause,
            "switch_fd": self._console.switch_fd if self._console else None,
            "repl": self._repl,
            "memory": self._memory,
            "rtc_us": self._rtc.now(),
            "ticks_us": self._ticks.now(),
        }

    def _follow(self, child: Child) -> str:
        started = False
        while True:
            try:
                said = self._heard.get(timeout=self._patience_s())
            except Empty:
                if self._starved():
                    return "watchdog"
                continue
            if said.child is not child:
                continue  # the last words of an earlier life
            if said.what == "reset":
                return str(said.value)
            if said.what == "ended":
                return _crashed(child.exit_code(), started)
            started = started or said.what == "started"
            self._note(said.what, said.value)

    def _note(self, what: str, value: object) -> None:
        if what == "fatal":
            raise Refused(f"the board can not go on: {value}")
        if what == "memory":
            self._memory = value
        elif what == "rtc_us" and isinstance(value, int):
            self._rtc = Counter.at(value)
        elif what == "watchdog_ms" and isinstance(value, int):
            self._watchdog_s, self._fed_at = value / 1000, time.monotonic()
        elif what == "repl":
            self._repl, self._at_repl = str(value), True
        elif what == "fed":
            self._fed_at = time.monotonic()

    def _patience_s(self) -> float:
        if self._watchdog_s is None:
            return _LOOK_S
        left_s = self._fed_at + self._watchdog_s + WATCHDOG_GRACE_S - time.monotonic()
        return min(max(left_s, 0.0), _LOOK_S)

    def _starved(self) -> bool:
        return self._watchdog_s is not None and self._patience_s() == 0.0


def pause_s(soon: int) -> float:
    """Return how long to wait after this many short lives in a row: none after the first."""
    if soon < 2:
        return 0.0
    return min(FIRST_PAUSE_S * 2.0 ** min(soon - 2, 16), LONGEST_PAUSE_S)


def _crashed(exit_code: int, started: bool) -> str:
    if not started:
        raise Refused(
            f"the interpreter ended with {exit_code} before the firmware began; what it said is"
            " above. Is --heap too small?"
        )
    print(f"the interpreter ended with {exit_code}; starting it again", flush=True)
    return "hard"
