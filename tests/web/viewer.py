"""Somebody who watches the gateway's stream of events over a socket of their own."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

GIVE_UP_S = 15


@dataclass
class Message:
    event: str
    data: Any
    id: str | None = None
    retry: str | None = None

    @property
    def parts(self) -> set[str]:
        assert self.event == "changed", self
        return set(self.data["parts"])


class Viewer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""
        self.head = ""

    async def begin(self, headers: dict[str, str]) -> None:
        lines = ["GET /v1/events HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), GIVE_UP_S)
        self.head = head.decode()

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    async def block(self) -> str | None:
        """Return the next message or comment as it was written, None at the end."""
        while b"\r\n\r\n" not in self._rest:
            piece = await self._chunk()
            if not piece:
                return None
            self._rest += piece
        block, _, self._rest = self._rest.partition(b"\r\n\r\n")
        return block.decode()

    async def _chunk(self) -> bytes:
        try:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            return (await self._reader.readexactly(size + 2))[:size]
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def message(self) -> Message | None:
        """Return the next message, None at the end."""
        async with asyncio.timeout(GIVE_UP_S):
            while (block := await self.block()) is not None:
                if not block.startswith(":"):
                    return _message(block)
        return None

    async def next(self) -> Message:
        message = await self.message()
        assert message is not None, "the stream ended"
        return message

    async def until(self, *parts: str) -> set[str]:
        """Wait until all of these have been told of; return all that were."""
        told: set[str] = set()
        async with asyncio.timeout(GIVE_UP_S):
            while not set(parts) <= told:
                told |= (await self.next()).parts
        return told

    def close(self) -> None:
        self._writer.close()


def _message(block: str) -> Message:
    fields = dict(line.split(": ", 1) for line in block.split("\r\n"))
    assert len(fields) == len(block.split("\r\n")), "one line for each field"
    return Message(
        fields["event"], json.loads(fields["data"]), fields.get("id"), fields.get("retry")
    )


@asynccontextmanager
async def viewer(
    port: int, *, token: str | None = None, last_id: str | None = None, receives: int | None = None
) -> AsyncIterator[Viewer]:
    """Watch inside the block.

    Args:
        last_id: of the last message that it had when it was cut off.
        receives: bytes that the system holds for it while it does not read.
    """
    sock = socket.socket()
    sock.setblocking(False)
    if receives is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**12 if receives else 2**16)
    watching = Viewer(reader, writer)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        await watching.begin(headers | ({"Last-Event-ID": last_id} if last_id else {}))
        yield watching
    finally:
        watching.close()
