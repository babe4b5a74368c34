# The power fails at every flash operation, in the interpreter itself: its littlefs, its files.
# micropython cut_on_micropython.py DEVICE_DIR
import gc
import os
import sys

BLOCK_BYTES = 4096
BLOCKS = 16
ERASED = b"\xff" * BLOCK_BYTES
EIO = 5


class Flash:
    # Does `power_for` operations, tears the next one, and fails from then on.
    def __init__(self, data, power_for):
        self._bytes = bytearray(data)
        self._power_for = power_for
        self.operations = 0

    def bytes(self):
        return bytes(self._bytes)

    def readblocks(self, block, buf, offset=0):
        start = block * BLOCK_BYTES + offset
        buf[:] = memoryview(self._bytes)[start : start + len(buf)]

    def writeblocks(self, block, buf, offset=0):
        return self._do(block * BLOCK_BYTES + offset, buf)

    def ioctl(self, op, arg):
        if op == 6:
            return self._do(arg * BLOCK_BYTES, ERASED)
        return {4: BLOCKS, 5: BLOCK_BYTES}.get(op, 0)

    def _do(self, start, data):
        left = self._power_for - self.operations
        self.operations += 1
        length = len(data) if left > 0 else self.operations * 7 % len(data) if left == 0 else 0
        self._bytes[start : start + length] = data[:length]
        return 0 if left > 0 else -EIO  # an exception here would jump out of littlefs


class Cut:
    def __init__(self, image, power_for):
        self.flash = Flash(image, power_for)
        self.put = {}
        self.gone = set()
        self.settled = 0
        self.begun = None

    def run(self, Outbox):
        os.mount(os.VfsLfs2(self.flash), "/flash")
        try:
            self._steps(opened(Outbox, self._drop))
            return True
        except OSError:
            return False
        finally:
            gc.collect()
            os.umount("/flash")

    def _drop(self, key, data):
        self.gone.add(key)

    def _steps(self, outbox):
        for number in range(22):
            self.begun = b"%d," % number * (40 if number % 7 else 100)
            self.put[outbox.put(self.begun)] = self.begun
            self.begun = None
            if number == 12:
                key = outbox.batch(3, 10000)[2][0]
                self.gone.add(key)
                outbox.bury(key, "bad")
            if number in (6, 15, 18):
                keys = [key for key, _ in outbox.batch(5, 10000)]
                self.gone.update(keys)
                outbox.remove(keys)

    def check(self, Outbox):
        flash = Flash(self.flash.bytes(), 1 << 30)
        os.mount(os.VfsLfs2(flash), "/flash")
        try:
            outbox = opened(Outbox)
            found = dict(outbox.batch(1000, 1 << 30))
            assert len(found) == len(outbox), "len"
            for key, data in self.put.items():
                assert key in self.gone or found.get(key) == data, f"lost {key}"
            for key, data in found.items():
                assert self.put.get(key, self.begun) == data, f"invented {key}"
            key = outbox.put(b"new")
            assert key > max(list(self.put) + list(found) + [0]), "key used again"
            outbox.remove(found)
            assert opened(Outbox).batch(9, 9) == [(key, b"new")], "not as put"
        finally:
            gc.collect()
            os.umount("/flash")


def opened(Outbox, on_drop=None):
    return Outbox(
        "/flash/outbox", max_bytes=100000, max_count=9, free_blocks=2, max_dead=3, on_drop=on_drop
    )


def main(device_dir):
    sys.path.insert(0, device_dir)
    import shelf
    from outbox import Outbox

    shelf._FOLD_SLOTS = 4
    flash = Flash(bytes(BLOCKS * BLOCK_BYTES), 1 << 30)
    os.VfsLfs2.mkfs(flash)
    cuts = 0
    while True:
        cut = Cut(flash.bytes(), cuts)
        whole = cut.run(Outbox)
        cut.check(Outbox)
        if whole and cut.flash.operations <= cuts:
            break
        cuts += 1
    print("cuts", cuts)


main(sys.argv[1])
