"""Reads the body of a request as it was sent: bounded in size, in time, and all large ones too."""

import asyncio
import hashlib
from typing import NamedTuple

from aiohttp import StreamReader, web

from gateway.errors import Rejected, Unavailable

# Far more than a batch may have. It is read all the same: the signature is over the whole body,
# and a board believes no 413 that is not signed.
MAX_BYTES = 1024 * 1024

# No board sends more than this, so few of them at once are enough, and memory stays bounded
# before anybody has proved who he is.
_LARGE_BYTES = 64 * 1024
_MOST_LARGE = 8


class Body(NamedTuple):
    """A body as it was sent."""

    sent: bytes
    sha256: str  # lowercase hex


class BodyReader:
    """Reads bodies, each within `timeout_s`."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._large = asyncio.Semaphore(_MOST_LARGE)

    async def read(self, request: web.Request) -> Body:
        """Read the whole body.

        Raises:
            Rejected: 413 beyond MAX_BYTES, 408 too slow, 400 torn or not as HTTP has it.
            Unavailable: too many large ones just now.
        """
        if (request.content_length or 0) > MAX_BYTES:
            raise _too_large()
        content = request.content
        try:
            if content.is_eof():  # came with the head, as nearly every one does
                return _hashed(content.read_nowait())
            async with asyncio.timeout(self._timeout_s):
                return _hashed(await self._gather(content))
        except TimeoutError:
            raise Rejected(408, f"the body took longer than {self._timeout_s:g} s") from None
        except (web.RequestPayloadError, ConnectionError):
            raise Rejected(400, "the body is not complete") from None

    async def _gather(self, content: StreamReader) -> bytes:
        sent = bytearray()
        if not await _fill(sent, content, _LARGE_BYTES):
            if self._large.locked():
                raise Unavailable("too many large bodies at once")
            async with self._large:
                if not await _fill(sent, content, MAX_BYTES):
                    raise _too_large()
        return bytes(sent)


async def _fill(sent: bytearray, content: StreamReader, most_bytes: int) -> bool:
    """Append what comes; return whether all of it came to no more than `most_bytes`."""
    while len(sent) <= most_bytes and (chunk := await content.readany()):
        sent += chunk
    return len(sent) <= most_bytes


def _hashed(sent: bytes) -> Body:
    return Body(sent, hashlib.sha256(sent).hexdigest())


def _too_large() -> Rejected:
    return Rejected(413, f"the body is larger than {MAX_BYTES} bytes")
