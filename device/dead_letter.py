# PURE: records that the gateway will never take, each with the reason; bounded, the oldest go.
#
# A file's name holds its ordinal and its record's key. The newest ordinal is the lifetime count, and
# the newest file stays whatever the bound: so the count is in flash and costs nothing. Only the
# newest can be torn (by a cut while burying: its record still waits), so only it is read at opening.
import os

import framed

_MAX_REASON_CHARS = 100
_MAX_BYTES = framed.HEADER_BYTES + 2 + 4 * _MAX_REASON_CHARS + framed.MAX_DATA_BYTES


class DeadLetter:
    def __init__(self, folder, max_count):
        self._folder = folder
        self._max_count = max(1, max_count)
        try:
            names = os.listdir(folder)
            self._there = True
        except OSError:
            names = ()
            self._there = False
        self._entries = sorted(filter(None, [framed.numbers(name, 2) for name in names]))
        if self._entries and not self._read(self._entries[-1]):
            self._erase(self._entries.pop())

    @property
    def count(self):
        return self._entries[-1][0] if self._entries else 0

    def bury(self, key, reason, data):
        # Durable on return; OSError, and nothing has changed.
        if key in [known for _, known in self._entries]:
            return  # it came back after a cut in its burial
        entry = (self.count + 1, key)
        reason = reason[:_MAX_REASON_CHARS].encode()
        try:
            self._write(entry, len(reason).to_bytes(2, "little") + reason + data)
        except OSError:
            self._erase(entry)
            raise
        self._entries.append(entry)
        while len(self._entries) > self._max_count:
            self._erase(self._entries.pop(0))

    def letters(self):
        # Yields (key, reason, bytes), oldest first; one record in memory at a time.
        for entry in self._entries[:]:
            record = self._read(entry)
            if record:
                data = record[1]
                end = 2 + int.from_bytes(data[:2], "little")
                yield entry[1], data[2:end].decode(), data[end:]

    def _path(self, entry):
        return "%s/%08x-%x" % (self._folder, entry[0], entry[1])

    def _write(self, entry, data):
        if not self._there:  # an empty folder would cost two blocks
            os.mkdir(self._folder)
            self._there = True
        with open(self._path(entry), "wb") as file:
            file.write(framed.pack(entry[0], data))

    def _read(self, entry):
        try:
            with open(self._path(entry), "rb") as file:
                return framed.unpack(file.read(_MAX_BYTES))
        except OSError:
            return None

    def _erase(self, entry):
        try:
            os.remove(self._path(entry))
        except OSError:
            pass
