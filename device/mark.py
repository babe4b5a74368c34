# PURE: three numbers in flash: what is settled, how many were dropped, which keys may be in use.
#
# They are the name of an empty file: a rename is one small commit on littlefs, whole or not at all
# on every file system, and the listing that opens the outbox has read it already.
import os

import framed

_STRIDE = 256  # keys are taken in strides, so that a new key seldom costs a write


class Mark:
    def __init__(self, folder, names):
        self._folder = folder
        self._name = None
        self.settled = 0  # every key up to this one is removed, buried or dropped
        self.dropped = 0  # records, in this outbox's life
        self.limit = 0  # a key below it may have been used: the next opening starts from it
        for name in names:
            if name[0] == "m" and framed.numbers(name[1:], 3):
                self._read(name)

    def _read(self, name):
        self.settled, self.dropped, strides = framed.numbers(name[1:], 3)
        self.limit = strides * _STRIDE
        self._name = name

    def write(self, settled, dropped, next_key):
        name = "m%x-%x-%x" % (settled, dropped, next_key // _STRIDE + 1)
        if self._name:
            os.rename(self._folder + "/" + self._name, self._folder + "/" + name)
        else:
            with open(self._folder + "/" + name, "wb"):
                pass
        self._read(name)
