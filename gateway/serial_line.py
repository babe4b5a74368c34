"""An opened serial port: what pyserial and pyserial-asyncio give, made safe to wait for."""

import asyncio
import contextlib
from typing import Any

import serial
import serial_asyncio

try:
    from termios import error as TerminalError  # of a port that is gone; it is no OSError
except ImportError:  # Windows
    # Then what a port that is gone raises is an OSError; mypy wants one type for both systems.
    TerminalError = OSError  # type: ignore[misc, assignment]

BAUD = 115_200
MOST_WAITING_BYTES = 64 * 1024  # beyond it the port is not read until what came is taken


class Line(asyncio.Protocol):
    """One port from its opening to its end."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._came = bytearray()
        self._news = asyncio.Event()
        self._gone = asyncio.Event()

    @classmethod
    async def open(cls, device: str) -> "Line":
        """Open the port, for us alone. Raises OSError."""
        port = await asyncio.to_thread(_opened, device)  # a driver may take seconds
        line = cls()
        line._transport = _Transport(asyncio.get_running_loop(), line, port)
        return line

    async def read(self) -> bytes:
        """Return what has come since; nothing when the port is gone."""
        await self._news.wait()
        self._news.clear()
        came = bytes(self._came)
        self._came.clear()
        if self._gone.is_set():
            self._news.set()
        else:
            self._transport.resume_reading()
        return came

    def write(self, data: bytes) -> None:
        """Send it; what the other end does not take is lost with the port."""
        if not self._gone.is_set():
            self._transport.write(data)

    async def close(self) -> None:
        """Give the port up; when this returns another process can have it."""
        if not self._gone.is_set():
            self._transport.abort()
            await self._gone.wait()

    # What the transport tells.

    def data_received(self, data: bytes) -> None:
        self._came += data
        self._news.set()
        if len(self._came) > MOST_WAITING_BYTES:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._news.set()


class _Transport(serial_asyncio.SerialTransport):  # type: ignore[misc]  # it brings no types
    """Ends once, at once, and silently: its own would wait for a board that reads nothing."""

    _serial: serial.Serial | None

    def _fatal_error(self, exc: Exception, message: str = "") -> None:
        self._abort(exc)

    def _close(self, exc: Exception | None = None) -> None:
        self._abort(exc)

    def _call_connection_lost(self, exc: Exception | None) -> None:
        if self._serial is None:
            return
        with contextlib.suppress(OSError, TerminalError):
            self._serial.reset_output_buffer()  # closing would wait for it to be sent
        with contextlib.suppress(OSError, TerminalError):
            self._serial.close()
        self._serial = None
        self._write_buffer.clear()
        self._protocol.connection_lost(exc)


def _opened(device: str) -> serial.Serial:
    port = serial.Serial(baudrate=BAUD, timeout=0, exclusive=True)
    # Said before it is opened, or opening it would reset the board. That a pseudo-terminal has
    # no such lines is known to pyserial and passed over.
    port.dtr = port.rts = False
    try:
        port.port = device
        port.open()
    except (TerminalError, ValueError) as error:
        raise OSError(f"{device}: {error}") from error
    return port
