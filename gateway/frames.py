"""The frames of a cable: docs/protocol.md, section 5. Bytes in; deliveries and log text out.

A serial line carries whatever else a board says: its boot log, its REPL, noise. A frame is
recognised by its mark, its length and its checksum; all that is none is text. Whatever came
before, the next mark begins anew.
"""

import codecs
import re
from binascii import crc32
from dataclasses import dataclass

import msgspec

MARK = 0x1E  # JSON escapes it, so it is never inside a frame
MAX_FRAME_BYTES = 24 * 1024
MAX_LINE_CHARACTERS = 300  # of the log; what a line has beyond it is counted

_HEAD = re.compile(rb"\x1eFP1 (\d{1,5}) ([0-9a-f]{8}) ")
_MAYBE_HEAD = re.compile(
    rb"\x1e(?:F(?:P(?:1(?: (?:\d{1,5}(?: (?:[0-9a-f]{1,8})?)?)?)?)?)?)?"  # as far as it has come
)
_ENDS = (b"\n", b"\r\n")  # some terminal on the way may have put in the CR


class Unreadable(Exception):
    """The frame came whole, but holds no delivery. The message is for the sender to read."""


class Delivery(msgspec.Struct, frozen=True):
    """What a frame carries: an Authorization, or None, and a body; `id` comes back unread."""

    body: str
    auth: str | None = None
    id: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """What goes back: an HTTP answer's parts."""

    status: int
    signature: str | None
    retry_after: str | None
    body: str
    id: str | msgspec.UnsetType = msgspec.UNSET


_read = msgspec.json.Decoder(Delivery).decode
_write = msgspec.json.Encoder().encode


def delivery(payload: bytes) -> Delivery:
    """Return what the JSON of a frame says. Raises Unreadable."""
    try:
        return _read(payload)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"the frame holds no delivery: {error}") from None


def answer(answer: Answer) -> bytes:
    """Return the frame of an answer."""
    return frame(_write(answer))


def frame(payload: bytes) -> bytes:
    """Return the JSON in a frame."""
    return b"\x1eFP1 %d %08x %b\n" % (len(payload), crc32(payload), payload)


@dataclass(frozen=True, slots=True)
class Payload:
    """The JSON of a frame that came whole."""

    json: bytes


class Splitter:
    """Takes apart what comes over one line. Holds back at most one unfinished frame."""

    def __init__(self) -> None:
        self._held = bytearray()  # empty, or begins with a mark
        self._text = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def feed(self, data: bytes) -> list[Payload | str]:
        """Return the frames that are whole now and the text around them, in order."""
        found: list[Payload | str] = []
        while data:
            begin, again = self._next_mark(data)
            self._held += data[:begin]
            self._take(found)
            if again:
                self._give_up(found)
                self._held.append(MARK)
            data = data[begin + again :]
        return found

    def _next_mark(self, data: bytes) -> tuple[int, int]:
        at = data.find(MARK)
        return (len(data), 0) if at < 0 else (at, 1)

    def _take(self, found: list[Payload | str]) -> None:
        """Take from what is held all that is decided."""
        if not self._held:
            return
        if self._held[0] != MARK or not self._may_become_frame():
            self._give_up(found)
        elif (whole := self._whole()) is not None:
            payload, end = whole
            found.append(Payload(payload))
            del self._held[:end]
            self._give_up(found)  # what follows a frame is text until the next mark

    def _may_become_frame(self) -> bool:
        """Return whether what is held is the beginning of a frame, as far as it has come."""
        head = _HEAD.match(self._held)
        if head is None:
            return _MAYBE_HEAD.fullmatch(self._held) is not None
        end = head.end() + int(head[1])
        if end + 1 > MAX_FRAME_BYTES:
            return False
        if len(self._held) <= end:
            return True
        after = bytes(self._held[end : end + 2])
        is_ended = after.startswith(_ENDS)
        if is_ended:
            return crc32(self._held[head.end() : end]) == int(head[2], 16)
        return after == b"\r"  # an end that has come half

    def _whole(self) -> tuple[bytes, int] | None:
        """Return the JSON and where the frame ends, if its end is there."""
        head = _HEAD.match(self._held)
        if head is None:
            return None
        end = head.end() + int(head[1])
        after = bytes(self._held[end : end + 2])
        for mark in _ENDS:
            if after.startswith(mark):
                return bytes(self._held[head.end() : end]), end + len(mark)
        return None

    def _give_up(self, found: list[Payload | str]) -> None:
        """Pass on what is held as text."""
        text = self._text.decode(bytes(self._held))
        self._held.clear()
        if text:
            found.append(text)


class Lines:
    """Makes lines of text that comes in pieces; none becomes longer than a log can bear."""

    def __init__(self) -> None:
        self._line = ""
        self._beyond = 0  # characters of this line that were left out

    def feed(self, text: str) -> list[str]:
        """Return the lines that are complete now, without empty ones."""
        *whole, rest = text.split("\n")
        lines = []
        for piece in whole:
            self._add(piece)
            lines.append(self._end())
        self._add(rest)
        return [line for line in lines if line]

    def _add(self, piece: str) -> None:
        room = MAX_LINE_CHARACTERS - len(self._line)
        self._line += piece[:room]
        self._beyond += max(0, len(piece) - room)

    def _end(self) -> str:
        line, beyond = self._line.rstrip("\r"), self._beyond
        self._line, self._beyond = "", 0
        return f"{line} … and {beyond} characters" if beyond else line
