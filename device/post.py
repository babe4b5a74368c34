# One HTTP exchange over asyncio streams, with one deadline over all of it: name look-up,
# connect, write and read. Whatever goes wrong is an OSError, and the socket is closed.

import asyncio
import binascii
import socket
from errno import EINPROGRESS

_READINGS = "/v1/readings"
_OURS = (b"retry-after", b"fieldpost-signature", b"fieldpost-protocol")


class Answer:
    # counts: it is ours, and may be acted upon. retry_after: the header's text or None.
    def __init__(self, status, body, counts, signed, retry_after):
        self.status = status
        self.body = body
        self.counts = counts
        self.signed = signed
        self.retry_after = retry_after


class Post:
    deadline_s = 10
    max_head_bytes = 4096
    max_body_bytes = 16384
    chunk_bytes = 512

    # connect(address) -> (stream, close), address as getaddrinfo gives it.
    # method, resource: what is asked of the gateway, for those who want something else of it.
    def __init__(self, url, seal, urandom, connect=None, method="POST", resource=_READINGS):
        self._host, self._port, self._target = parse(url, resource)
        self._method = method
        self._seal = seal
        self._urandom = urandom
        self._connect = connect or _connect
        self._address = None

    async def exchange(self, body):
        """Send a wire.Body, read the answer. Raises OSError for everything that is none."""
        try:
            return await asyncio.wait_for(self._exchange(body), self.deadline_s)
        except asyncio.TimeoutError:
            self._address = None
            raise OSError("no answer within %s s" % self.deadline_s)
        except (OSError, EOFError, ValueError, IndexError) as err:
            self._address = None
            raise err if isinstance(err, OSError) else OSError("not an answer: %r" % err)

    async def _exchange(self, body):
        nonce = binascii.hexlify(self._urandom(16)).decode()
        stream, close = await self._connect(self._look_up())
        try:
            for chunk in self._chunks(self._head(nonce, body), body):
                stream.write(chunk)
                await stream.drain()
            status, fields, begun = await self._read_head(stream)
            text = await self._read_body(stream, fields, begun)
        finally:
            close()
        return self._answer(nonce, status, fields, text)

    def _look_up(self):
        # On a board this blocks the other loops, and a deadline passed meanwhile shows only
        # afterwards; so the address is kept for as long as it works, the watchdog is set far
        # above the longest look-up, and a literal address never asks anybody.
        if self._address is None:
            self._address = socket.getaddrinfo(self._host, self._port, 0, socket.SOCK_STREAM)[0]
        return self._address

    def _head(self, nonce, body):
        lines = [
            "%s %s HTTP/1.1" % (self._method, self._target),
            "Host: %s:%d" % (self._host, self._port),
            "Content-Type: application/json",
            "Content-Length: %d" % len(body),
            "Connection: close",
        ]
        signature = self._seal.authorization(self._method, self._target, nonce, body.sha256_hex)
        if signature:
            lines.append("Authorization: " + signature)
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def _chunks(self, head, body):
        # Neither the whole body, for which there is no room, nor a packet for each piece.
        waiting, size = [head], len(head)
        for piece in body.pieces():
            waiting.append(piece)
            size += len(piece)
            if size >= self.chunk_bytes:
                yield b"".join(waiting)
                waiting, size = [], 0
        yield b"".join(waiting)

    async def _read_head(self, stream):
        data = b""
        while b"\r\n\r\n" not in data:
            if len(data) > self.max_head_bytes:
                raise ValueError("headers too long")
            data += await _some(stream, 512)
        at = data.index(b"\r\n\r\n")
        lines = data[:at].split(b"\r\n")
        return _status(lines[0]), _fields(lines[1:]), data[at + 4 :]

    async def _read_body(self, stream, fields, begun):
        # None: an answer whose end nobody states. Ours always do, so it can not count.
        length = fields.get(b"content-length", b"")
        if not length.isdigit() or len(length) > 6 or int(length) > self.max_body_bytes:
            return None
        text = bytearray(int(length))
        have = min(len(begun), len(text))
        text[:have] = begun[:have]
        while have < len(text):
            more = await _some(stream, min(512, len(text) - have))
            text[have : have + len(more)] = more
            have += len(more)
        return text

    def _answer(self, nonce, status, fields, text):
        retry, signature, protocol = (_text(fields, name) for name in _OURS)
        whole = text is not None
        signed = whole and self._seal.signed(nonce, status, retry, signature, text)
        counts = whole and self._seal.counts(status, signed, protocol)
        return Answer(status, text, counts, signed, retry)


def parse(url, resource=_READINGS):
    """(host, port, request target) of a gateway's URL. Raises ValueError."""
    scheme, _, rest = url.partition("://")
    usual_port = {"http": 80, "https": 443}.get(scheme)
    place, _, path = rest.partition("/")
    host, _, port = place.partition(":")
    if not usual_port or not host or (":" in place and not port.isdigit()):
        raise ValueError("gateway: not http(s)://HOST[:PORT]: " + url)
    prefix = "/" + path.strip("/") if path.strip("/") else ""
    return host, int(port or usual_port), prefix + resource


async def _connect(address):
    sock = await connected(address)
    return asyncio.StreamReader(sock), sock.close


async def connected(address):
    """A socket that does not block, connected to what getaddrinfo gave."""
    # Not asyncio.open_connection: cancelled while it connects, it leaves its socket open.
    sock = socket.socket(address[0], address[1], address[2])
    try:
        sock.setblocking(False)
        _begin(sock, address[-1])
        await _writable(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def _begin(sock, to):
    try:
        sock.connect(to)
    except OSError as err:
        if err.errno != EINPROGRESS:
            raise


def _writable(sock):
    yield asyncio.core._io_queue.queue_write(sock)


async def _some(stream, n):
    data = await stream.read(n)
    if not data:
        raise EOFError
    return data


def _status(line):
    protocol, code = line.split(b" ")[:2]
    if not protocol.startswith(b"HTTP/1.") or len(code) != 3 or not code.isdigit():
        raise ValueError("no status line")
    return int(code)


def _fields(lines):
    fields = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    return fields


def _text(fields, name):
    value = fields.get(name)
    return None if value is None else value.decode()
