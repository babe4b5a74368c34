# PURE: the readings that nobody has acknowledged yet; survives a power cut at any instant.
#
# The laws:
# - A record is durable when put returns, and waits until it is removed, buried or dropped.
# - What goes, goes by the mark: one rename that says "settled up to here" and counts the drops; only
#   then are its files deleted. So a drop is counted if and only if it happened, and what was removed
#   stays removed, unless an older record still waits in the same file: then it comes back at the
#   next opening. To deliver twice is harmless, to lose is not.
# - A burial is written down before the record goes.
# - Bounded by bytes, by count and by free blocks of the file system. When full, the oldest go.
#
# shelf.py knows the files, mark.py what is settled, dead_letter.py what was buried.
import os

from dead_letter import DeadLetter
from framed import MAX_DATA_BYTES
from mark import Mark
from shelf import Shelf, holds_block
from slots import INLINE_BYTES

_MAX_SLOTS = 128  # when there is no room to fold: a folder stays below some 200 files
_PUTS_BETWEEN_FOLDS = 16  # … that fail
_PUTS_IN_A_BLOCK = 8  # of small records, whose folder grows by less
_DROPS_AT_ONCE = 16  # so many records fit in RAM
_ENOSPC = 28


class Outbox:
    def __init__(self, folder, *, max_bytes, max_count, free_blocks=8, max_dead=64, on_drop=None):
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._free_blocks = free_blocks
        self._on_drop = on_drop
        self._puts_to_look = self._puts_to_fold = 0
        names = _names(folder)
        self._mark = Mark(folder, names)
        self.dropped = self._mark.dropped
        self._shelf = Shelf(folder, names, self._mark.settled)
        self._index = self._shelf.index
        self._dead = DeadLetter(folder + "/dead", max_dead)
        self._next = max(self._mark.limit, self._index.newest_key() + 1)

    def __len__(self):
        return self._index.count

    @property
    def torn(self):
        # Records found torn or unreadable since opening.
        return self._shelf.torn

    @property
    def dead(self):
        return self._dead.count

    def dead_letters(self):
        # Yields (key, reason, bytes), oldest first.
        return self._dead.letters()

    def put(self, data):
        # Returns the record's key. ValueError; OSError 28 if dropping did not help.
        if not 1 <= len(data) <= MAX_DATA_BYTES:
            raise ValueError("a record has 1 to 1024 bytes")
        if len(data) > self._max_bytes:
            raise OSError(_ENOSPC, "longer than the whole outbox may be")
        self._make_room(len(data))
        try:
            return self._store(data)
        except OSError as error:
            if error.errno != _ENOSPC or not len(self):
                raise
        self._drop_oldest_file()
        return self._store(data)

    def batch(self, count, nbytes):
        # [(key, bytes), …] oldest first, at least one if any waits. Removes nothing.
        found = []
        for file in self._index.files():
            if found and len(found) >= count:
                break
            for key, data in self._shelf.records(file, max(1, count - len(found))):
                nbytes -= len(data)
                if found and nbytes < 0:
                    return found
                found.append((key, data))
        return found

    def remove(self, keys):
        # Unknown keys are ignored. What the flash refuses to write down comes back after a restart.
        self._settle(self._shelf.strike(keys))

    def bury(self, key, reason):
        # Unknown keys are ignored. OSError if the dead letter can not be written: it still waits.
        data = self._shelf.find(key)
        if data is not None:
            self._dead.bury(key, reason, data)
            self._puts_to_look = 0
            self.remove([key])

    def _store(self, data):
        key = self._next
        if key >= self._mark.limit:
            self._mark.write(self._mark.settled, self.dropped, key)
        self._next += 1
        self._shelf.store(key, data)
        return key

    def _settle(self, empty):
        settled = self._shelf.settle(self._next)
        if settled > self._mark.settled:
            try:
                self._mark.write(settled, self.dropped, self._next)
            except OSError:
                pass  # the files are deleted one by one then
        for file in empty:
            self._shelf.erase(file, self._mark.settled)

    def _make_room(self, nbytes):
        waiting = self._index
        while waiting.count and (
            waiting.count >= self._max_count or waiting.nbytes + nbytes > self._max_bytes
        ):
            self._drop(1)
        self._puts_to_fold -= 1
        must_fold = self._puts_to_fold <= 0 and self._shelf.must_fold()
        if must_fold and not (self._look(1) and self._shelf.fold()):
            self._puts_to_fold = _PUTS_BETWEEN_FOLDS
        if len(waiting.in_slots) >= _MAX_SLOTS:
            self._drop_oldest_file()
        self._puts_to_look -= 1 if nbytes <= INLINE_BYTES else _PUTS_IN_A_BLOCK
        if self._puts_to_look <= 0:
            self._look(0)

    def _look(self, blocks):
        # Makes room for so many blocks; whether there is. statvfs reads the whole file system, so it
        # is not asked at each put. Only what holds a block has to go: when it is others who fill
        # the flash, the newest small records stay.
        spare = self._spare_blocks() - blocks
        while spare < 1 and holds_block(self._index.oldest()):
            self._drop_oldest_file()
            spare = self._spare_blocks() - blocks
        self._puts_to_look = _PUTS_IN_A_BLOCK * max(1, spare)
        return spare >= 1

    def _spare_blocks(self):
        statvfs = getattr(os, "statvfs", None)
        return statvfs(self._folder)[4] - self._free_blocks if statvfs else 1 << 20

    def _drop_oldest_file(self):
        oldest = self._index.oldest()
        while oldest == self._index.oldest():
            self._drop(_DROPS_AT_ONCE)

    def _drop(self, count):
        # The oldest records of the oldest file.
        records = self._shelf.records(self._index.oldest(), count)
        if self._on_drop:
            for key, data in records:
                self._on_drop(key, data)
        self.dropped += len(records)
        self._settle(self._shelf.strike([key for key, _ in records]))


def _names(folder):
    try:
        os.mkdir(folder)
    except OSError:
        pass  # it is there already
    return os.listdir(folder)
