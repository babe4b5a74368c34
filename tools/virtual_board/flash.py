"""The flash as a file: a littlefs2 with the parameters that MicroPython mounts a board's with."""

import os
from pathlib import Path
from typing import Any

from littlefs import LFSConfig, LittleFS, LittleFSError

from tools.virtual_board import lock
from tools.virtual_board.flags import BLOCK_BYTES
from tools.virtual_board.refused import Refused

DEFAULT_BYTES = 512 * 1024


class ImageFile:
    """What littlefs-python asks of a flash: the open image. littlefs itself checks the bounds."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, cfg: LFSConfig, block: int, off: int, size: int) -> bytes:
        return os.pread(self._fd, size, block * BLOCK_BYTES + off)

    def prog(self, cfg: LFSConfig, block: int, off: int, data: bytes) -> int:
        os.pwrite(self._fd, data, block * BLOCK_BYTES + off)
        return 0

    def erase(self, cfg: LFSConfig, block: int) -> int:
        return self.prog(cfg, block, 0, b"\xff" * BLOCK_BYTES)

    def sync(self, cfg: LFSConfig) -> int:
        return 0


def is_new(fd: int) -> bool:
    return os.fstat(fd).st_size == 0


def make(path: Path, size_bytes: int, firmware: Path | None) -> int:
    """Put a formatted flash with the firmware, if any, at the path: all of it or nothing.

    Returns its descriptor, locked before anybody can see the file.
    """
    unfinished = path.with_name(path.name + ".new")
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    lock.hold(fd)
    os.pwrite(fd, b"\xff" * size_bytes, 0)
    files = _file_system(fd)
    try:
        files.format()
        files.mount()
        _install(files, firmware)
    except LittleFSError as error:
        raise Refused(f"{size_bytes // 1024}K are too small for {firmware}: {error}") from error
    unfinished.rename(path)
    return fd


def update(path: Path, fd: int, size_bytes: int | None, firmware: Path | None) -> list[str]:
    """Put what has changed of the firmware on an existing flash; return the files' names.

    Raises:
        Refused: it is no board's flash, it has another size than asked for, or it is full.
    """
    found = os.fstat(fd).st_size
    if size_bytes not in (None, found):
        raise Refused(f"{path} has {found} bytes, --size says {size_bytes}; leave --size out")
    files = _mounted(path, fd)
    try:
        return _install(files, firmware)
    except LittleFSError as error:
        raise Refused(f"{path}: can not copy the firmware: {error}") from error
    finally:
        files.unmount()


def _mounted(path: Path, fd: int) -> LittleFS:
    files = _file_system(fd)
    try:
        files.mount()
    except LittleFSError as error:
        text = f"{path} is no board's flash ({error}); it was left as it is: name another file"
        raise Refused(text) from error
    return files


def _file_system(fd: int) -> LittleFS:
    # MicroPython's defaults. A cache of another size would make other files inline.
    parameters: dict[str, Any] = {
        "context": ImageFile(fd),
        "block_size": BLOCK_BYTES,
        "block_count": os.fstat(fd).st_size // BLOCK_BYTES,
        "read_size": 32,
        "prog_size": 32,
        "lookahead_size": 32,
        "cache_size": 128,
    }
    return LittleFS(mount=False, **parameters)


def _install(files: LittleFS, firmware: Path | None) -> list[str]:
    if firmware is None:
        return []
    # main.py last: until all it needs is there the old one runs.
    sources = sorted(firmware.glob("*.py"), key=lambda source: (source.name == "main.py", source))
    return [source.name for source in sources if _copied(files, source)]


def _copied(files: LittleFS, source: Path) -> bool:
    content = source.read_bytes()
    if _content(files, source.name) == content:
        return False
    with files.open(source.name + ".new", "wb") as file:
        file.write(content)
    files.rename(source.name + ".new", source.name)
    return True


def _content(files: LittleFS, name: str) -> bytes | None:
    try:
        with files.open(name, "rb") as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None
