# PURE: where each waiting record lies: in a slot (slots.py), or folded into a segment (segment.py).
# Knows the files; when to fold and what has to go, the outbox decides.
#
# The laws:
# - The listing is the index: a name is as whole as the folder itself.
# - A slot whose key is settled or lies within a segment is stale. So a fold is one new file and a
#   rename: before the rename the slots count, after it the segment does, and nothing is deleted.
# - What can not be read, or has a wrong CRC, is counted in `torn` and left behind; nothing is fatal.
import os

import segment
from index import File, Index, is_slot
from slots import INLINE_BYTES, Slots

_FOLD_SLOTS = 80  # folded when so many wait …
_FOLD_LONG_SLOTS = 16  # … or so many that hold a block each


class Shelf:
    def __init__(self, folder, names, settled):
        self.torn = 0
        self.index = Index(settled)
        self._folder = folder
        self._temporary = folder + "/tmp"
        _erase(self._temporary)
        self._slots = Slots(folder, names)
        self._open_segments(names, settled)
        self._open_slots()

    def _open_segments(self, names, settled):
        for numbers in filter(None, map(segment.numbers, names)):
            file = File(*numbers)
            if file.last <= settled or not file.count:
                _erase(self._path(file))
            else:
                self.index.add(file)
        self.index.sort()
        oldest = self.index.oldest()
        if oldest and oldest.first <= settled:
            self._strike(oldest, ())

    def _open_slots(self):
        for key, nbytes in self._slots.open():
            if key is None:
                self.torn += 1
            elif not self.index.is_gone(key) and not self.index.holding(key):
                self._slots.keep(key)
                self.index.add(File(key, key, 1, nbytes))
        self.index.sort()

    def find(self, key):
        # The bytes of a waiting record, else None.
        found = []

        def take(at, data):
            if at == key and not self.index.is_gone(key):
                found.append(data)
            return at == key

        file = self.index.holding(key)
        if file:
            self._walk(file, take)
        return found[0] if found else None

    def records(self, file, count):
        # The oldest `count` records that wait in this file, as (key, bytes).
        found = []

        def take(key, data):
            if not self.index.is_gone(key):
                found.append((key, data))
            return len(found) >= count

        self._walk(file, take)
        return found

    def _walk(self, file, visit):
        # visit(key, data) for each whole record until it returns True; it does no I/O of its own.
        try:
            if is_slot(file):
                whole = self._slots.walk(file.first, visit)
            else:
                whole = segment.walk(self._path(file), file.first, file.last, visit)
        except OSError:
            self.torn += self.index.waiting_in(file)
            self._forget(file)
        else:
            if whole and whole[0] < file.count:
                self.torn += file.count - whole[0]
                self._shrink(file, whole)

    def _shrink(self, file, whole):
        # From now on a segment's name tells how many are whole. If none of them waits it is set
        # aside, in the place of the one before.
        left = File(file.first, file.last, *whole)
        if is_slot(file) or not _rename(self._path(file), self._path(left)):
            self._forget(file)
            return
        self.index.replace(file, left)
        if self._strike(left, ()):
            self._forget(left)
            _rename(self._path(left), self._folder + "/torn")

    def store(self, key, data):
        # Durable on return; OSError.
        self._slots.store(key, data)
        self.index.add(File(key, key, 1, len(data)))

    def must_fold(self):
        slots = self.index.in_slots
        return len(slots) >= _FOLD_SLOTS or sum(map(holds_block, slots)) >= _FOLD_LONG_SLOTS

    def fold(self):
        # The oldest waiting slots become one segment. False: it failed, and nothing has changed.
        try:
            count = segment.write(self._temporary, self._records_in_slots())
        except OSError:
            count = 0
        folded = self.index.in_slots[:count]
        if count > 1:  # one alone would have a slot's name
            nbytes = sum(file.nbytes for file in folded)
            whole = File(folded[0].first, folded[-1].last, count, nbytes)
            path = self._path(whole)
            self.index.add(whole)  # beforehand: memory must not be short after the rename
            if _rename(self._temporary, path):
                for file in folded:
                    self._forget(file)
                    if holds_block(file):
                        self._slots.wipe(file.first, file.last)
                return True
            self.index.forget(whole)
        _erase(self._temporary)
        return False

    def _records_in_slots(self):
        slots = self.index.in_slots
        at = 0
        while at < len(slots):
            for record in self.records(slots[at], 1):
                at += 1
                yield record  # if there is none it was damaged, and is not in the index any more

    def strike(self, keys):
        # These wait no longer. Returns the files of which nothing waits: erase them.
        keys = sorted(keys)
        empty = []
        for file in self.index.files(keys[0]) if keys else ():
            if file.first > keys[-1]:
                break
            file = self._strike(file, keys)
            if file:
                self._forget(file)
                empty.append(file)
        return empty

    def _strike(self, file, keys):
        # Returns the file if nothing of it waits any more.
        if is_slot(file):
            return file if file.first in keys else None
        oldest = file == self.index.oldest()
        count = nbytes = 0

        def strike(key, data):
            nonlocal oldest, count, nbytes
            if key in keys or self.index.is_gone(key):
                self.index.go(key, oldest)
            else:
                oldest = False
                count += 1
                nbytes += len(data)

        self._walk(file, strike)
        file = self.index.holding(file.first)  # as it is now
        if file:
            self.index.wait(file, count, nbytes)
        return None if count else file

    def settle(self, next_key):
        # Every key up to the returned one is gone.
        oldest = self.index.oldest()
        if oldest and self.index.went_early(oldest.first):
            self._strike(oldest, ())
        return self.index.settle(next_key)

    def erase(self, file, settled):
        # What the mark does not cover is deleted, and so is what holds a block.
        if not is_slot(file):
            _erase(self._path(file))
        if file.last > settled or (is_slot(file) and holds_block(file)):
            self._slots.wipe(file.first, file.last)

    def _forget(self, file):
        self.index.forget(file)
        if is_slot(file):
            self._slots.release(file.first)

    def _path(self, file):
        return self._folder + "/" + segment.name(file)


def holds_block(file):
    return file is not None and (not is_slot(file) or file.nbytes > INLINE_BYTES)


def _rename(old, new):
    try:
        os.rename(old, new)
    except OSError:
        return False
    return True


def _erase(path):
    try:
        os.remove(path)
    except OSError:
        pass
