# PURE: small files, "00" "01" …, that hold one new record each and are written again and again.
#
# A slot whose record waits no longer is not deleted, only written over when its turn comes: that
# saves a commit for the deletion and one for the creation, which is half of the flash's wear.
# Up to 128 bytes littlefs keeps a file inline, in its folder. It is written in place: a torn slot
# means that put never returned.
import os

import framed

INLINE_BYTES = 128 - framed.HEADER_BYTES  # a longer record has a block of its own until folded
_ENOSPC = 28
_FREE, _UNUSABLE = 0, -1


class Slots:
    def __init__(self, folder, names):
        self._folder = folder
        self._numbers = [
            int(name, 16) for name in names if len(name) == 2 and framed.numbers(name, 1)
        ]
        self._keys = [_FREE] * (max(self._numbers) + 1 if self._numbers else 0)  # slot -> key

    def open(self):
        # ([(key, bytes), …] of the whole records, how many slots are torn or can not be read).
        found = []
        for slot in self._numbers:
            try:
                record = self._read(slot)
            except OSError:
                self._keys[slot] = _UNUSABLE
                continue
            if record:
                self._keys[slot] = record[0]
                found.append((record[0], len(record[1])))
        return sorted(found), len(self._numbers) - len(found)

    def read(self, key):
        # (key, data), or None if it is damaged; OSError.
        return self._read(self._keys.index(key))

    def _read(self, slot):
        with open(self._path(slot), "rb") as file:
            return framed.unpack(file.read(framed.HEADER_BYTES + framed.MAX_DATA_BYTES + 1))

    def _path(self, slot):
        return "%s/%02x" % (self._folder, slot)

    def store(self, key, data, waiting):
        # Durable on return. `waiting` are the keys that must not be written over.
        slot = self._free(waiting)
        self._keys[slot] = _UNUSABLE
        try:
            with open(self._path(slot), "wb") as file:
                file.write(framed.pack(key, data))
        except OSError as error:
            if error.errno == _ENOSPC:
                self._erase(slot)
            raise
        self._keys[slot] = key

    def _free(self, waiting):
        for slot, key in enumerate(self._keys):
            if key != _UNUSABLE and key not in waiting:
                return slot
        self._keys.append(_FREE)
        return len(self._keys) - 1

    def wipe(self, first, last):
        # Deletes the slots with these keys: their records must not be found at the next opening.
        for slot, key in enumerate(self._keys):
            if first <= key <= last:
                self._erase(slot)

    def _erase(self, slot):
        self._keys[slot] = _FREE
        try:
            os.remove(self._path(slot))
        except OSError:
            pass
