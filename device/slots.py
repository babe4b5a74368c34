# PURE: small files, "00" "01" …, that hold one new record each and are written again and again.
#
# A slot whose record waits no longer is not deleted, only written over when its turn comes: that
# saves a commit for the deletion and one for the creation, which is half of the flash's wear.
# Up to 128 bytes littlefs keeps a file inline, in its folder. It is written in place: a torn slot
# means that put never returned.
import os

import framed

_INLINE_FILE_BYTES = 128
INLINE_BYTES = _INLINE_FILE_BYTES - framed.HEADER_BYTES  # a longer record has a block until folded
_MOST_BYTES = framed.HEADER_BYTES + framed.MAX_DATA_BYTES
_ENOSPC = 28


class Slots:
    def __init__(self, folder, names):
        self._folder = folder
        self._numbers = [
            int(name, 16) for name in names if len(name) == 2 and framed.numbers(name, 1)
        ]
        # Of each slot: the key that waits there, -key if it is stale, 0 if it is free, None if it
        # can not be used.
        self._keys = [0] * (max(self._numbers) + 1 if self._numbers else 0)

    def open(self):
        # Yields (key, bytes) of each whole record, (None, 0) for each that is torn or unreadable.
        for slot in self._numbers:
            try:
                record = self._read(slot)
            except OSError:
                record = self._keys[slot] = None
            if record:
                self._keys[slot] = -record[0]
            yield (record[0], len(record[1])) if record else (None, 0)

    def keep(self, key):
        # It waits, and must not be written over.
        self._keys[self._keys.index(-key)] = key

    def release(self, key):
        self._keys[self._keys.index(key)] = -key

    def walk(self, key, visit):
        # As segment.walk, with one record.
        record = self._read(self._keys.index(key))
        if not record:
            return 0, 0
        return None if visit(*record) else (1, len(record[1]))

    def _read(self, slot):
        with open(self._path(slot), "rb") as file:
            frame = file.read(_INLINE_FILE_BYTES)
            if len(frame) == _INLINE_FILE_BYTES:
                frame += file.read(_MOST_BYTES)
            return framed.unpack(frame)

    def _path(self, slot):
        return "%s/%02x" % (self._folder, slot)

    def store(self, key, data):
        # Durable on return; OSError.
        slot = self._free()
        self._keys[slot] = None
        try:
            with open(self._path(slot), "wb") as file:
                file.write(framed.pack(key, data))
        except OSError as error:
            if error.errno == _ENOSPC:
                self._erase(slot)
            raise
        self._keys[slot] = key

    def _free(self):
        for slot, key in enumerate(self._keys):
            if key is not None and key <= 0:
                return slot
        self._keys.append(0)
        return len(self._keys) - 1

    def wipe(self, first, last):
        # Deletes the stale slots with these keys: they must not be found at the next opening.
        for slot, key in enumerate(self._keys):
            if key is not None and first <= -key <= last:
                self._erase(slot)

    def _erase(self, slot):
        self._keys[slot] = 0
        try:
            os.remove(self._path(slot))
        except OSError:
            pass
