# PURE: the boot file and the ids that stand on it. A boot's name is a nonce from entropy
# and a persisted counter; it is durable before the first id of that boot, so a cut at any
# instant may waste a name but never gives one out twice.

import binascii
import os


def next_boot(path, urandom):
    """The name of this boot, durable on return. Raises OSError: then no id may be made."""
    nonce, count = _read(path) or (binascii.hexlify(urandom(4)).decode(), 0)
    _write(path, nonce, count + 1)
    return nonce + str(count + 1)


def _read(path):
    # Missing, torn or alien all mean the same: begin again under a new nonce.
    try:
        with open(path, "rb") as file:
            text, crc = file.read(64).split(b"\n")[:2]
        if crc != _crc(text):
            return None
        nonce, count = text.decode().split(" ")
        return nonce, int(count)
    except (OSError, ValueError):
        return None


def _write(path, nonce, count):
    # Temp + rename in the same folder: the old file stays whole until the new one is.
    text = ("%s %d" % (nonce, count)).encode()
    with open(path + ".new", "wb") as file:
        file.write(text + b"\n" + _crc(text) + b"\n")
    os.rename(path + ".new", path)


def _crc(data):
    return ("%08x" % (binascii.crc32(data) & 0xFFFFFFFF)).encode()


class Ids:
    # n is used up when it is given out, whatever becomes of the reading.
    def __init__(self, device, boot):
        self.boot = boot
        self.n = 0
        self._prefix = device + "-" + boot + "-"

    def next(self):
        """A reading id that nobody had before."""
        self.n += 1
        return self._prefix + str(self.n)
