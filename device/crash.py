# What went wrong in an earlier boot: written down, sent, forgotten when acknowledged.

import gc
import io
import os
import sys

_MAX_TEXT = 1024


def describe(err):
    """A traceback as one line of at most 1 KiB; its end says most, so that end is kept."""
    gc.collect()
    try:
        out = io.StringIO()
        sys.print_exception(err, out)
        return shorten(out.getvalue().strip().replace("\n  ", " | ").replace("\n", " | "))
    except MemoryError:
        return "out of memory, and none left to say where"


def shorten(text):
    """At most 1 KiB of printable ASCII: the same number of characters and of bytes."""
    text = bytearray(text[-_MAX_TEXT:].encode()[-_MAX_TEXT:])
    for at, byte in enumerate(text):
        if not 32 <= byte < 127:
            text[at] = 0x3F  # ?
    return text.decode()


class Report:
    # The crash file's text, and what this boot has to say besides (a wrong config).
    def __init__(self, path):
        self._path = path
        self.notes = 0
        try:
            with open(path, "rb") as file:
                self.text = shorten(file.read(_MAX_TEXT).decode()) or None
        except (OSError, ValueError):
            self.text = None

    def note(self, text):
        """Send this too; it is not kept in flash."""
        self.notes += 1
        self.text = shorten(self.text + " | " + text if self.text else text)

    def write(self, text):
        """Keep a crash for the next boot. Never raises: there is nobody left to tell."""
        try:
            with open(self._path, "wb") as file:
                file.write(shorten(text).encode())
        except OSError:
            pass

    def forget(self, sent):
        """The gateway has this text: say it no more."""
        if sent is None or sent != self.text:
            return
        self.text = None
        try:
            os.remove(self._path)
        except OSError:
            pass
