# PURE: the files with waiting records, in RAM, and which of their records are gone.
#
# One tuple for each file and none for each record, and nothing large in one piece: a board's heap
# has many holes and no large ones.
from collections import namedtuple

File = namedtuple("File", ("first", "last", "count", "nbytes"))  # keys; one key alone: a slot


def is_slot(file):
    return file.first == file.last


class Index:
    def __init__(self, settled):
        self.count = self.nbytes = 0  # of the records that wait
        self.in_slots = []  # files, as in segments; oldest first
        self.segments = []
        self._partly = {}  # first key -> (count, bytes) that wait, of a segment some of which is gone
        self._settled = settled  # every key up to this one is gone
        self._gone = set()  # and these, although an older record waits

    def add(self, file):
        self._list_of(file).append(file)
        self._count(file, 1)

    def sort(self):
        self.segments.sort(key=_first)
        self.in_slots.sort(key=_first)

    def replace(self, segment, renamed):
        # The same records in a file of another name.
        self._partly[segment.first] = self._waiting(segment)
        self.segments[self.segments.index(segment)] = renamed

    def wait(self, segment, count, nbytes):
        # So many of its records wait.
        self._count(segment, -1)
        self._partly[segment.first] = (count, nbytes)
        self._count(segment, 1)

    def forget(self, file):
        self._list_of(file).remove(file)
        self._count(file, -1)
        self._partly.pop(file.first, None)
        for key in [key for key in self._gone if file.first <= key <= file.last]:
            self._gone.remove(key)

    def waiting_in(self, file):
        return self._waiting(file)[0]

    def _waiting(self, file):
        return self._partly.get(file.first, (file.count, file.nbytes))

    def _count(self, file, sign):
        count, nbytes = self._waiting(file)
        self.count += sign * count
        self.nbytes += sign * nbytes

    def _list_of(self, file):
        return self.in_slots if is_slot(file) else self.segments

    def files(self, key=0):
        # Yields the files with this key or later ones, oldest first, whatever is removed meanwhile.
        file = self._after(key - 1)
        while file:
            yield file
            file = self._after(file.last)

    def oldest(self):
        return self._after(0)

    def holding(self, key):
        # The file that has this key in its span, or None.
        file = self._after(key - 1)
        return file if file and file.first <= key else None

    def newest_key(self):
        return max([files[-1].last for files in (self.segments, self.in_slots) if files] or [0])

    def _after(self, key):
        found = [_after(files, key) for files in (self.segments, self.in_slots)]
        return min(filter(None, found), key=_first) if any(found) else None

    def is_gone(self, key):
        return key <= self._settled or key in self._gone

    def went_early(self, key):
        return key in self._gone

    def go(self, key, oldest):
        # This record waits no longer; `oldest` if no older one does.
        if oldest:
            self._settled = max(self._settled, key)
            self._gone.discard(key)
        else:
            self._gone.add(key)

    def settle(self, next_key):
        # Every key up to the returned one is gone.
        oldest = self.oldest()
        self._settled = max(self._settled, (oldest.first if oldest else next_key) - 1)
        return self._settled


def _first(file):
    return file.first


def _after(files, key):
    for file in files:
        if file.last > key:
            return file
    return None
