# The board's flash: an image file as a block device, erased and written as a real one.
# mypy: ignore-errors

BLOCK_BYTES = 4096

_COUNT = 4  # extmod/vfs.h
_SIZE = 5
_ERASE = 6
_ERASED = b"\xff" * 512  # not a whole block: it would cost as much heap


class Flash:
    def __init__(self, file, blocks):
        self._file = file
        self._blocks = blocks

    def readblocks(self, block, buffer, offset=0):
        self._file.seek(block * BLOCK_BYTES + offset)
        self._file.readinto(buffer)

    def writeblocks(self, block, buffer, offset):
        self._file.seek(block * BLOCK_BYTES + offset)
        self._file.write(buffer)

    def ioctl(self, request, block):
        if request == _ERASE:
            for offset in range(0, BLOCK_BYTES, len(_ERASED)):
                self.writeblocks(block, _ERASED, offset)
        return {_COUNT: self._blocks, _SIZE: BLOCK_BYTES}.get(request, 0)
