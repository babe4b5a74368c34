# PURE: the frames of a cable, between everything else that a serial line carries.
#   \x1eFP1 <bytes> <crc32 as 8 hex> <json>\n

import binascii

MARK = 0x1E  # JSON escapes it, so it is never inside a frame
MAX_FRAME_BYTES = 24 * 1024
_MAX_HEAD = 20  # \x1eFP1 24576 01234567 and a space


def escaped(piece):
    """A piece of JSON as a piece of a string in other JSON. It has no control characters."""
    return piece.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


class Frame:
    # One delivery. There is no room for the whole of it beside its records, so it is made piece
    # by piece, once to be measured and once to be sent. authorization: text or None.
    def __init__(self, authorization, nonce, body):
        auth = b"null"
        if authorization:
            auth = b'"' + escaped(authorization.encode()) + b'"'
        self._begin = b'{"auth":' + auth + b',"id":"' + nonce.encode() + b'","body":"'
        self._body = body
        size = crc = 0
        for piece in self._json():
            size += len(piece)
            crc = binascii.crc32(piece, crc)
        self._head = b"\x1eFP1 %d %08x " % (size, crc & 0xFFFFFFFF)
        self.fits = len(self._head) + size + 1 <= MAX_FRAME_BYTES

    def pieces(self):
        """Its bytes in order."""
        yield self._head
        for piece in self._json():
            yield piece
        yield b"\n"

    def _json(self):
        yield self._begin
        for piece in self._body.pieces():
            yield escaped(piece)
        yield b'"}'


class Reader:
    # Finds the frames among whatever else comes. Each mark begins anew.
    def __init__(self):
        self._forget()

    def feed(self, data):
        """Take what came. Returns the JSON of each frame that is whole now, mostly none."""
        found = []
        at = 0
        while at < len(data):
            if self._json is None:
                self._look(data[at : at + 1])
                at += 1
            else:
                part = data[at : at + len(self._json) - self._have]
                mark = part.find(b"\x1e")
                if mark >= 0:  # the rest of this frame will never come
                    self._forget()
                    at += mark
                else:
                    at += len(part)
                    self._fill(part, found)
        return found

    def _forget(self):
        self._head = b""
        self._json = None
        self._have = 0
        self._crc = b""

    def _look(self, byte):
        if byte[0] == MARK:
            self._head = byte
        elif self._head:
            self._head += byte
            parts = self._head.split(b" ")
            if len(self._head) > _MAX_HEAD or not b"\x1eFP1".startswith(parts[0]):
                self._forget()
            elif len(parts) == 4:
                self._begin(parts[1], parts[2])

    def _begin(self, size, crc):
        self._forget()
        if size.isdigit() and 0 < int(size) < MAX_FRAME_BYTES:
            self._crc = crc
            self._json = bytearray(int(size))

    def _fill(self, part, found):
        self._json[self._have : self._have + len(part)] = part
        self._have += len(part)
        if self._have == len(self._json):
            if b"%08x" % (binascii.crc32(self._json) & 0xFFFFFFFF) == self._crc:
                found.append(self._json)
            self._forget()
