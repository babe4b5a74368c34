# 4,000 readings of 70 bytes through an outbox in a heap as small as a board's; the flash is a file.
# micropython -X heapsize=192K fill_on_micropython.py DEVICE_DIR IMAGE
import gc
import os
import sys

BLOCK_BYTES = 4096
BLOCKS = 128
ERASED = b"\xff" * BLOCK_BYTES
COUNT = 4000
FIRMWARE_BYTES = 88 * 1024  # what the rest of the firmware may take


class FileFlash:
    def __init__(self, path):
        self._file = open(path, "w+b")  # noqa: SIM115  # as long as the flash is mounted
        for block in range(BLOCKS):
            self.ioctl(6, block)

    def readblocks(self, block, buf, offset=0):
        self._file.seek(block * BLOCK_BYTES + offset)
        self._file.readinto(buf)

    def writeblocks(self, block, buf, offset=0):
        self._file.seek(block * BLOCK_BYTES + offset)
        self._file.write(buf)

    def ioctl(self, op, arg):
        if op == 6:
            self.writeblocks(arg, ERASED)
        return {4: BLOCKS, 5: BLOCK_BYTES}.get(op, 0)


def used():
    gc.collect()
    return gc.mem_alloc()


def opened():
    from outbox import Outbox

    return Outbox("/flash/outbox", max_bytes=1 << 20, max_count=12000)


def main(device_dir, image):
    sys.path.insert(0, device_dir)
    flash = FileFlash(image)
    os.VfsLfs2.mkfs(flash)
    os.mount(os.VfsLfs2(flash), "/flash")
    before = used()
    opened()
    code = used() - before
    firmware = [bytearray(1024) for _ in range((FIRMWARE_BYTES - code) // 1024)]
    empty = used()
    outbox = opened()
    for number in range(COUNT):
        outbox.put(b"%-70d" % number)
    waiting = used() - empty
    outbox = None
    outbox = opened()
    print("code", code, "waiting", waiting, "opened", used() - empty)
    number = 0
    while len(outbox):
        batch = outbox.batch(64, 16384)
        for _, data in batch:
            assert data == b"%-70d" % number
            number += 1
        outbox.remove([key for key, _ in batch])
    assert number == COUNT, number
    assert len(firmware)
    os.umount("/flash")


main(sys.argv[1], sys.argv[2])
