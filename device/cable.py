# The exchange of post.py over the USB serial line, between whatever else is said there. A
# frame that does not arrive whole, or not in time, is no answer.

import asyncio
import binascii
import json
import select

import frames
from post import Answer

_TARGET = "/v1/readings"
_LOOK_MS = 4  # a board's serial buffer, 260 bytes, is full after 22 ms
_STALE_BYTES = 4096


class Console:
    # stdin gives bytes only as many as are asked for, and waits until so many are there: so they
    # are asked for one by one, for as long as there is one. Its .buffer neither turns CR into
    # LF nor LF into CR LF. Ctrl-C never gets here: it interrupts.
    chunk_bytes = 64  # a board writes them in 6 ms, and nothing else runs meanwhile

    def __init__(self, stdin, stdout):
        self._in = stdin.buffer
        self._out = stdout.buffer
        self._poll = select.poll()
        self._poll.register(stdin, select.POLLIN)

    def came(self, max_bytes):
        """What is there already, up to max_bytes."""
        data = bytearray()
        while len(data) < max_bytes and self._poll.poll(0):
            byte = self._in.read(1)
            if not byte:
                break  # nobody is there
            data += byte
        return bytes(data)

    async def read(self):
        """The next that comes."""
        while True:
            data = self.came(256)
            if data:
                return data
            await asyncio.sleep_ms(_LOOK_MS)

    async def write(self, data):
        for at in range(0, len(data), self.chunk_bytes):
            self._out.write(data[at : at + self.chunk_bytes])
            await asyncio.sleep_ms(0)


class Hush:
    # The line belongs to the frames: what would be printed into one waits until it is out, and
    # what only a trace is for is not printed at all.
    max_held = 8

    # traced: `tell` puts all but the log elsewhere.
    def __init__(self, tell, traced):
        self._tell = tell
        self._traced = traced
        self._held = None

    def tell(self, event, value):
        if event != "log":
            if self._traced:
                self._tell(event, value)
        elif self._held is None:
            self._tell(event, value)
        elif len(self._held) < self.max_held:
            self._held.append(value)

    def hold(self):
        self._held = []

    def release(self):
        held, self._held = self._held, None
        for value in held:
            self._tell("log", value)


class Cable:
    deadline_s = 10

    def __init__(self, seal, urandom, console, hush):
        self._seal = seal
        self._urandom = urandom
        self._console = console
        self._hush = hush

    async def exchange(self, body):
        """Send a wire.Body, read the answer. Raises OSError for everything that is none."""
        try:
            return await asyncio.wait_for(self._exchange(body), self.deadline_s)
        except asyncio.TimeoutError:
            raise OSError("no answer on the cable within %s s" % self.deadline_s)

    async def _exchange(self, body):
        nonce = binascii.hexlify(self._urandom(16)).decode()
        authorization = self._seal.authorization("POST", _TARGET, nonce, body.sha256_hex)
        frame = frames.Frame(authorization, nonce, body)
        if not frame.fits:  # as the gateway would say, had it room for it: send the halves
            return Answer(413, b"", True, False, None)
        self._console.came(_STALE_BYTES)  # a late answer to an earlier attempt
        await self._send(frame)
        reader = frames.Reader()
        while True:
            for payload in reader.feed(await self._console.read()):
                answer = self._answer(nonce, payload)
                if answer:
                    return answer

    async def _send(self, frame):
        self._hush.hold()
        try:
            for piece in frame.pieces():
                await self._console.write(piece)
        finally:
            self._hush.release()

    def _answer(self, nonce, payload):
        # None: not to this request. Without a key nothing but the id tells a late answer.
        try:
            found = json.loads(payload)
            status, body = found["status"], found["body"].encode()
            retry, signature = found.get("retry_after"), found.get("signature")
            if found.get("id", nonce) != nonce or not isinstance(status, int):
                return None
            signed = self._seal.signed(nonce, status, retry, signature, body)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return Answer(status, body, self._seal.counts(status, signed, "1"), signed, retry)
