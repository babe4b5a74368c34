"""A board's serial line: its reset wires, its log, and the REPL, by mpremote's transport."""

import contextlib
import errno
import json
import struct
import time
from collections.abc import Callable
from typing import Any

import serial
from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport

from tools.flash.lock import Lock

BAUD = 115_200
READ_TIMEOUT_S = 3.0
SILENT_S = 5.0
# Long enough for the slowest board to come up, short enough for a person to wait.
REPL_PATIENCE_S = 6.0
REOPEN_PATIENCE_S = 8.0
_KNOCK_S = 0.06  # between two Ctrl-C: one of them falls into the first second
_QUIET_S = 0.12
_PULSE_S = 0.12
_RESET_LATER = "import machine,time\ntime.sleep_ms(2000)\nmachine.reset()"
_PROMPT = b">>> "
_KNOCK = b"\x03\x02"  # interrupt; out of a raw REPL
_NO_SUCH_WIRE = {errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP}


class Broken(Exception):
    """The line or the board went away in the middle; after a reset it may be tried again."""


class Refused(Exception):
    """The board ran what it was told and raised; the message is its traceback."""


class Silent(Exception):
    """No REPL answers; `seen` is what came instead."""

    def __init__(self, seen: bytes) -> None:
        super().__init__(seen)
        self.seen = seen


class _Transport(SerialTransport):  # type: ignore[misc]
    """mpremote's, over a port that is open already."""

    def __init__(self, port: serial.Serial, name: str) -> None:
        self.in_raw_repl = False
        self.use_raw_paste = True
        self.device_name = name
        self.mounted = False
        self.is_pty = False  # its special case waits for ever where nothing comes
        self.serial = port

    def read_until(
        self, min_num_bytes: int, ending: bytes, timeout: float = SILENT_S, **more: Any
    ) -> bytes:
        # Of its own it waits twice as long for a board that was reset.
        found: bytes = super().read_until(min_num_bytes, ending, timeout=timeout, **more)
        return found


class Line:
    """A port, opened. `patience_s`: how long a REPL may take to answer.

    `has_wires` says whether it has the wires that reset a chip, once that was tried.
    """

    def __init__(self, port: str, patience_s: float = REPL_PATIENCE_S) -> None:
        self.port = port
        self.has_wires = False
        self._patience_s = patience_s
        self.lock: Lock | None = None
        self.open()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._serial.close()

    def give_up(self) -> None:
        """Let the gateway have the port."""
        self.close()
        if self.lock is not None:
            self.lock.release()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        port = serial.serial_for_url(
            self.port, BAUD, do_not_open=True, timeout=READ_TIMEOUT_S, exclusive=True
        )
        port.dtr = port.rts = False  # said before it is opened, or opening would reset the board
        port.open()
        self._serial = port
        self._transport = _Transport(port, self.port)

    # Resets.

    def reset_by_wire(self) -> bool:
        """Pull the board's reset wire; return False where the line has none."""
        try:
            self._serial.dtr = False
            self._serial.rts = True
            time.sleep(_PULSE_S)
            self._serial.rts = False
        except OSError as error:
            if error.errno in _NO_SUCH_WIRE:
                return False
            raise Broken(str(error)) from error
        self.has_wires = True
        return True

    def reset(self) -> None:
        """Reset the board, which is at its REPL, and leave it running. Raises Broken."""
        if not self.reset_by_wire():
            self._enter()
            self._tried(
                lambda: self._transport.exec_raw_no_follow("import machine;machine.reset()")
            )
            self._transport.in_raw_repl = False
            time.sleep(_PULSE_S)
        self._reopen_if_gone()

    def reset_later(self) -> None:
        """Let the board reset itself when somebody else has had time to open the port."""
        self._enter()
        self._tried(lambda: self._transport.exec_raw_no_follow(_RESET_LATER))
        self._transport.in_raw_repl = False

    def _reopen_if_gone(self) -> None:
        # A chip that is its own USB device goes away with its reset.
        give_up_at = time.monotonic() + REOPEN_PATIENCE_S
        while True:
            try:
                self._serial.in_waiting  # noqa: B018 it asks the system
                return
            except OSError:
                self.close()
            while True:
                try:
                    self.open()
                    break
                except OSError as error:
                    if time.monotonic() > give_up_at:
                        raise Broken(f"{self.port} did not come back: {error}") from error
                    time.sleep(0.1)

    # The REPL.

    def reach(self) -> None:
        """Reset the board and be at its REPL before its watchdog is armed.

        Raises:
            Silent: no REPL answers.
            Broken: the port went away.
        """
        if not self.reset_by_wire():
            self.knock()
            self.reset()
        else:
            self._reopen_if_gone()
        self.knock()

    def knock(self) -> None:
        """Interrupt what runs, until the REPL answers. Raises Silent, Broken."""
        seen, self._transport.in_raw_repl = b"", False
        give_up_at = time.monotonic() + self._patience_s
        while time.monotonic() < give_up_at:
            self._write(_KNOCK)
            seen = (seen + self._gather(_KNOCK_S))[-4096:]
            if seen.endswith(_PROMPT):
                self._gather(_QUIET_S)  # what the other knocks called up
                self._enter()
                return
        raise Silent(seen)

    def _enter(self) -> None:
        if not self._transport.in_raw_repl:
            self._tried(lambda: self._transport.enter_raw_repl(soft_reset=False, timeout_overall=3))

    def run(self, script: str, silent_s: float = SILENT_S) -> str:
        """Run this on the board and return what it printed. Raises Refused, Broken.

        silent_s: how long it may print nothing.
        """
        self._enter()
        printed, error = self._tried(lambda: self._transport.exec_raw(script, timeout=silent_s))
        if error:
            raise Refused(error.decode(errors="replace"))
        return str(printed, errors="replace")

    def ask(self, script: str) -> Any:
        """Run this, which prints one line of JSON, and return what that says."""
        printed = self.run(script)
        try:
            return json.loads(printed.strip().rpartition("\n")[2])
        except ValueError as error:
            raise Broken(f"the board answered {printed[-80:]!r}") from error

    def fetch(self, path: str) -> bytes:
        """Return a file of the board. Raises OSError if it has none, Broken."""
        self._enter()
        try:
            return bytes(self._transport.fs_readfile(path, chunk_size=1024))
        except (TransportError, struct.error, serial.SerialException) as error:
            raise Broken(str(error)) from error

    def _tried(self, act: Callable[[], Any]) -> Any:
        try:
            with contextlib.redirect_stdout(None):  # mpremote prints what it does not understand
                return act()
        except (TransportError, OSError, struct.error) as error:
            raise Broken(str(error)) from error

    # The log.

    def read(self, patience_s: float) -> bytes:
        """Return what the board says, as soon as it says something. Raises Broken."""
        return self._gather(patience_s, at_once=True)

    def _gather(self, for_s: float, *, at_once: bool = False) -> bytes:
        seen = b""
        until = time.monotonic() + for_s
        try:
            while time.monotonic() < until and not (seen and at_once):
                waiting = self._serial.in_waiting
                seen += self._serial.read(waiting) if waiting else b""
                if not waiting:
                    time.sleep(0.005)
        except OSError as error:
            raise Broken(str(error)) from error
        return seen

    def _write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except OSError as error:
            raise Broken(str(error)) from error
