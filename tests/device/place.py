"""A port on which something answers a board: its gateway, or everything else."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable

KEY = "9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca7"
HTML = b"<html>Welcome to the hotel</html>"

Role = Callable[["Request", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Request:
    """What the board sent, as far as the answer has to know it."""

    def __init__(self, head: bytes, body: bytes):
        self.head = head.decode()
        self.body = body
        self.batch = json.loads(body)
        self.verdicts = json.dumps(
            {
                "stored": len(self.batch.get("readings", [])),
                "duplicates": 0,
                "rejected": [],
                "server_ms": time.time_ns() // 1_000_000,
            }
        ).encode()

    @property
    def device(self) -> str:
        return str(self.batch["device"])

    @property
    def nonce(self) -> str:
        return self.head.split('nonce="')[1][:32]


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return Request(head, await reader.readexactly(length))


def answer(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def signature(
    request: Request,
    status: int,
    body: bytes,
    *,
    retry_after: str = "",
    key: str = KEY,
    nonce: str | None = None,
) -> str:
    """The header that makes an answer to this request count."""
    digest = hashlib.sha256(body).hexdigest()
    to_whom = f"{request.device}\n{nonce or request.nonce}"
    message = f"fieldpost-answer-1\n{to_whom}\n{status}\n{retry_after}\n{digest}"
    made = hmac.new(bytes.fromhex(key), message.encode(), hashlib.sha256).hexdigest()
    return f"Fieldpost-Signature: {made}"


def says(status: int, body: bytes | None = None, *headers: str) -> Role:
    """Answers so, unsigned; without a body, with the verdict that the board would like."""

    async def role(
        request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(answer(status, request.verdicts if body is None else body, *headers))

    return role


def raw(data: bytes, *, then_wait: bool = False) -> Role:
    """Sends these bytes and hangs up, or keeps the line open."""

    async def role(
        request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(data)
        if then_wait:
            await reader.read()

    return role


def slowly(data: bytes) -> Role:
    async def role(
        request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for at in range(len(data)):
            writer.write(data[at : at + 1])
            await asyncio.sleep(0.1)

    return role


def endless(begin: bytes, line: bytes) -> Role:
    async def role(
        request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(begin)
        while True:
            writer.write(line * 100)
            await writer.drain()

    return role


async def stores(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    signed = signature(request, 200, request.verdicts)
    writer.write(answer(200, request.verdicts, signed, "Fieldpost-Protocol: 1"))


async def stores_at_length(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    body = request.verdicts + b" " * 16384
    writer.write(answer(200, body, signature(request, 200, body)))


async def stores_in_pieces(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    signed = signature(request, 200, request.verdicts)
    data = answer(200, request.verdicts, "x-LONG: " + "y" * 2000, signed.replace("Field", "fIELD"))
    for at in range(0, len(data), 7):
        writer.write(data[at : at + 7])
        await writer.drain()
        await asyncio.sleep(0)


async def replays(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(
        answer(200, request.verdicts, signature(request, 200, request.verdicts, nonce="0" * 32))
    )


async def signs_with_another_key(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    signed = signature(request, 200, request.verdicts, key="00" * 32)
    writer.write(answer(200, request.verdicts, signed, "Fieldpost-Protocol: 1"))


async def turns_a_503_into_200(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    signed = signature(request, 503, request.verdicts)
    writer.write(answer(200, request.verdicts, signed))


async def asks_for_a_week(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    signed = signature(request, 503, b"{}", retry_after="604800")
    writer.write(answer(503, b"{}", signed, "Retry-After: 604800"))


async def hangs_up(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    pass


async def resets(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def closes_its_half(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
    writer.write_eof()
    await reader.read()


class Place:
    """A port where something answers; the roles take turns, the last one stays."""

    def __init__(self, *roles: Role, reads_first: bool = True):
        self.roles = list(roles)
        self.requests: list[Request] = []
        self.reads_first = reads_first
        self.url = ""
        self._guests: list[asyncio.Task[None]] = []

    def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._guests.append(asyncio.create_task(self._serve(reader, writer)))

    async def close(self) -> None:
        for guest in self._guests:
            guest.cancel()
        await asyncio.gather(*self._guests, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            role = self.roles.pop(0) if len(self.roles) > 1 else self.roles[0]
            request = await _read(reader) if self.reads_first else Request(b"", b"{}")
            self.requests.append(request)
            await role(request, reader, writer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def open_place(place: Place, tls: ssl.SSLContext | None = None) -> AsyncIterator[Place]:
    server = await asyncio.start_server(place.welcome, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    place.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield place
    finally:
        server.close()
        await place.close()
