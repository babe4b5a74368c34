# Runs on MicroPython: micropython outbox_wear.py DEVICE_DIR; prints one JSON object.
#
# The real firmware files on the real littlefs, MicroPython's own parameters and time stamps, over a
# flash in RAM that counts.
# mypy: ignore-errors
import json
import os
import sys

BLOCK_BYTES = 4096
BLOCKS = 128  # 512 KiB
ERASED = b"\xff" * BLOCK_BYTES
READINGS = 1000
SIZES = (70, 80, 90, 100, 110, 120)


class Flash:
    def __init__(self):
        self._bytes = bytearray(BLOCKS * BLOCK_BYTES)
        self.erases = self.programmed = 0

    def readblocks(self, block, buf, offset=0):
        start = block * BLOCK_BYTES + offset
        buf[:] = memoryview(self._bytes)[start : start + len(buf)]

    def writeblocks(self, block, buf, offset=0):
        start = block * BLOCK_BYTES + offset
        self._bytes[start : start + len(buf)] = buf
        self.programmed += len(buf)

    def ioctl(self, op, arg):
        if op == 6:
            self._bytes[arg * BLOCK_BYTES : (arg + 1) * BLOCK_BYTES] = ERASED
            self.erases += 1
        return {4: BLOCKS, 5: BLOCK_BYTES}.get(op, 0)


class Round:
    # One outbox on a flash of its own, with the firmware's files beside it.
    def __init__(self, device_dir):
        from outbox import Outbox

        self.flash = Flash()
        os.VfsLfs2.mkfs(self.flash)
        os.mount(os.VfsLfs2(self.flash), "/flash")
        for name in os.listdir(device_dir):
            if name.endswith(".py"):
                copy(device_dir + "/" + name, "/flash/" + name)
        self.outbox = Outbox("/flash/outbox", max_bytes=1 << 20, max_count=100_000)
        self._erases, self._programmed = self.flash.erases, self.flash.programmed
        self._taken = 0

    def put(self, size):
        self._taken += 1
        self.outbox.put(reading(self._taken, size))

    def send(self):
        batch = self.outbox.batch(64, 16384)
        self.outbox.remove([key for key, _ in batch])

    def end(self):
        # Erases and bytes programmed for each reading that was taken.
        os.umount("/flash")
        erases = self.flash.erases - self._erases
        programmed = self.flash.programmed - self._programmed
        return erases / self._taken, programmed / self._taken


def copy(source, target):
    with open(source, "rb") as file:
        content = file.read()
    with open(target, "wb") as file:
        file.write(content)


def reading(number, size):
    # As wire.record makes it, with a sensor's name of the length that is missing.
    head = f'["esp32-a4cf12b3d4e5-7f3a17c212-{number}","'
    tail = f'",{number % 40}.{number % 10},"Cel",{1764529200123 + number * 10007}]'
    name = "soil.moisture.in.the.north.field.beside.the.old.well.at.1.m"
    return (head + name[: size - len(head) - len(tail)] + tail).encode()


def on_line(device_dir, size):
    # Each reading is sent as soon as it is taken.
    one = Round(device_dir)
    for _ in range(READINGS):
        one.put(size)
        one.send()
    return one.end()


def outage(device_dir, size):
    one = Round(device_dir)
    for _ in range(READINGS):
        one.put(size)
    while len(one.outbox):
        one.send()
    return one.end()


def capacity(device_dir):
    # The least that waits once the oldest have to go.
    one = Round(device_dir)
    while not one.outbox.dropped:
        one.put(70)
    least = len(one.outbox)
    for _ in range(READINGS):
        one.put(70)
        least = min(least, len(one.outbox))
    one.end()
    return least


def main(device_dir):
    sys.path.insert(0, device_dir)
    found = {
        "on_line": [on_line(device_dir, size) for size in SIZES],
        "outage": [outage(device_dir, size) for size in SIZES],
        "capacity": capacity(device_dir),
        "sizes": SIZES,
    }
    print(json.dumps(found))


main(sys.argv[1])
