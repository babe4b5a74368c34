# Runs test files on the real interpreter: micropython run_on_micropython.py DEVICE_DIR TEST_FILE…
#
# A test is a plain `def test_…():` with bare asserts. Each one starts in an empty folder of its
# own: here a littlefs fresh from the factory, under pytest a temporary folder (see conftest.py).
import gc
import os
import sys

_BLOCK_BYTES = 4096


class RamFlash:
    def __init__(self, blocks):
        self._blocks = blocks
        self._bytes = bytearray(blocks * _BLOCK_BYTES)

    def readblocks(self, block, buf, offset=0):
        start = block * _BLOCK_BYTES + offset
        buf[:] = memoryview(self._bytes)[start : start + len(buf)]

    def writeblocks(self, block, buf, offset=0):
        start = block * _BLOCK_BYTES + offset
        self._bytes[start : start + len(buf)] = buf

    def ioctl(self, op, arg):
        return {4: self._blocks, 5: _BLOCK_BYTES}.get(op, 0)


def run(name, test):
    gc.collect()
    flash = RamFlash(64)
    os.VfsLfs2.mkfs(flash)
    os.mount(os.VfsLfs2(flash), "/flash")
    os.chdir("/flash")
    try:
        test()
        print("ok  ", name)
        return 0
    except Exception as error:
        print("FAIL", name)
        sys.print_exception(error)
        return 1
    finally:
        os.chdir("/")
        os.umount("/flash")


def main(device_dir, files):
    sys.path.insert(0, device_dir)
    failed = found = 0
    for file in files:
        folder, name = file.rsplit("/", 1)
        sys.path.insert(0, folder)
        module = __import__(name[: -len(".py")])
        for name in sorted(dir(module)):
            if name.startswith("test_"):
                found += 1
                failed += run(name, getattr(module, name))
    print(f"{failed} failed of {found}")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
