# PURE: where each waiting record lies: in a slot (slots.py), or folded into a segment (segment.py).
# Knows the files; when to fold and what has to go, the outbox decides.
#
# The laws:
# - The listing is the index: a name is as whole as the folder itself.
# - A slot whose key is settled or lies within a segment is stale. So a fold is one new file and a
#   rename: before the rename the slots count, after it the segment does, and nothing is deleted.
# - RAM holds one tuple for each file and the keys that went from files not yet empty, no record.
# - What can not be read, or has a wrong CRC, is counted in `torn` and left behind; nothing is fatal.
import os
from collections import namedtuple

import segment
from slots import INLINE_BYTES, Slots

_FOLD_SLOTS = 80  # folded when so many wait …
_FOLD_LONG_SLOTS = 16  # … or so many that hold a block each

File = namedtuple("File", ("first", "last", "count", "nbytes"))  # keys; one key alone: a slot


class Shelf:
    def __init__(self, folder, names, settled):
        self._segments = []
        self.in_slots = []
        self._gone = {}  # key -> bytes
        self._folder = folder
        self._temporary = folder + "/tmp"
        self._erase(self._temporary)
        self._slots = Slots(folder, names)
        found, self.torn = self._slots.open()
        self._open_segments(names, settled)
        for key, nbytes in found:
            if key > settled and not any(_spans(file, key) for file in self._segments):
                self.in_slots.append(File(key, key, 1, nbytes))

    def _open_segments(self, names, settled):
        for numbers in sorted(filter(None, map(segment.numbers, names))):
            self._segments.append(File(*numbers))
        for file in self.files():
            if file.last <= settled:
                self._forget(file)
                self._erase(self._path(file))
            elif file.first <= settled:
                self._strike(file, lambda key: key <= settled)

    def __len__(self):
        return sum(file.count for file in self._segments) + len(self.in_slots) - len(self._gone)

    def nbytes(self):
        return sum(file.nbytes for file in self.files()) - sum(self._gone.values())

    def files(self):
        # Oldest first; a list that stays as it is, whatever is taken out meanwhile.
        return self._segments + self.in_slots

    def find(self, key):
        # The bytes of a waiting record, else None.
        found = []

        def take(at, data):
            if at == key:
                found.append(data)
            return at == key

        for file in self.files():
            if _spans(file, key):
                self._walk(file, take)
        return found[0] if found else None

    def records(self, file, count):
        # The oldest `count` records that wait in this file, as (key, bytes).
        found = []

        def take(key, data):
            found.append((key, data))
            return len(found) >= count

        self._walk(file, take)
        return found

    def oldest_key(self):
        # None if nothing waits.
        files = self.files()
        if not files:
            return None
        found = self.records(files[0], 1) if self._waiting(files[0]) < files[0].count else ()
        return found[0][0] if found else files[0].first

    def oldest_holds_block(self):
        return any(map(_holds_block, self.files()[:1]))

    def _waiting(self, file):
        return file.count - sum(1 for key in self._gone if _spans(file, key))

    def _path(self, file):
        return self._folder + "/" + segment.name(file)

    def _walk(self, file, visit):
        # visit(key, data) for each waiting record until it returns True; does no I/O of its own.
        def unless_gone(key, data):
            return key not in self._gone and visit(key, data)

        try:
            if file.first == file.last:
                record = self._slots.read(file.first)
                whole = None if record else (0, 0)
                if record:
                    unless_gone(*record)
            else:
                whole = segment.walk(self._path(file), unless_gone)
        except OSError:
            self.torn += self._waiting(file)
            self._forget(file)
            return
        if whole and whole[0] < file.count:
            self._shrink(file, *whole)

    def _shrink(self, file, count, nbytes):
        # Some records are damaged. From now on a segment's name tells how many are whole; if none
        # is, it is set aside, in the place of the one before.
        self.torn += file.count - count
        self._forget(file)
        if file.first == file.last:
            return
        left = File(file.first, file.last, count, nbytes)
        try:
            os.rename(self._path(file), self._path(left) if count else self._folder + "/torn")
        except OSError:
            return
        if count:
            self._segments = sorted(self._segments + [left])

    def store(self, key, data):
        # Durable on return; OSError.
        self._slots.store(key, data, [file.first for file in self.in_slots])
        self.in_slots.append(File(key, key, 1, len(data)))

    def must_fold(self):
        long = sum(map(_holds_block, self.in_slots))
        return len(self.in_slots) >= _FOLD_SLOTS or long >= _FOLD_LONG_SLOTS

    def fold(self):
        # The oldest waiting slots become one segment. False: it failed, and nothing has changed.
        slots = []
        try:
            count = segment.write(self._temporary, self._whole_slots(slots))
            first, *_, last = slots[:count]  # ValueError: one alone would have a slot's name
            nbytes = sum(file.nbytes for file in slots[:count])
            whole = File(first.first, last.last, count, nbytes)
            os.rename(self._temporary, self._path(whole))
        except (OSError, ValueError):
            self._erase(self._temporary)
            return False
        self._segments.append(whole)
        for file in slots[:count]:
            self.in_slots.remove(file)
            if _holds_block(file):  # and is stale now
                self._slots.wipe(file.first, file.last)
        return True

    def _whole_slots(self, taken):
        # Yields their records, oldest first, and tells which they were.
        for file in self.in_slots[:]:
            for record in self.records(file, 1):
                taken.append(file)
                yield record

    def strike(self, keys):
        # These wait no longer, in RAM; in flash only after take_empty and erase.
        low, high = min(keys), max(keys)
        for file in self.files():
            if file.first <= high and low <= file.last:
                self._strike(file, lambda key: key in keys)

    def _strike(self, file, chosen):
        def strike(key, data):
            if chosen(key):
                self._gone[key] = len(data)

        if file.first != file.last:
            self._walk(file, strike)
        elif chosen(file.first):
            self._gone[file.first] = file.nbytes

    def take_empty(self):
        # The files in which nothing waits leave the index; they are still in flash.
        newest = max(self._gone) if self._gone else 0
        empty = [file for file in self.files() if file.first <= newest and not self._waiting(file)]
        for file in empty:
            self._forget(file)
        return empty

    def erase(self, file, settled):
        # What the mark does not cover is deleted, and so is what holds a block.
        if file.first != file.last:
            self._erase(self._path(file))
        elif _holds_block(file):
            settled = 0
        if file.last > settled:
            self._slots.wipe(file.first, file.last)

    def _forget(self, file):
        (self.in_slots if file.first == file.last else self._segments).remove(file)
        for key in [key for key in self._gone if _spans(file, key)]:
            del self._gone[key]

    def _erase(self, path):
        try:
            os.remove(path)
        except OSError:
            pass


def _holds_block(file):
    return file.first != file.last or file.nbytes > INLINE_BYTES


def _spans(file, key):
    return file.first <= key <= file.last
