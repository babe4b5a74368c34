"""An ESP32's loader on a pseudo-terminal, as far as esptool speaks with it: SLIP frames, the chip's
registers, and a flash that can be erased and written. It says that esptool's stub runs already."""

import hashlib
import os
import struct
import threading
import tty
import zlib
from collections.abc import Iterator

# esptool/loader.py, ESPLoader.ESP_CMDS
SYNC, WRITE_REG, READ_REG = 0x08, 0x09, 0x0A
FLASH_BEGIN, FLASH_DATA = 0x02, 0x03
DEFLATE_BEGIN, DEFLATE_DATA = 0x10, 0x11
MD5, ERASE_FLASH, SECURITY_INFO = 0x13, 0xD0, 0x14
MAGIC_REGISTER = 0x40001000
FLASH_ID_REGISTER = 0x3FF42080  # SPI_W0
ESP32_MAGIC = 0x00F01D83
FLASH_ID = 0x1640EF  # 4 MB


class RomLoader:
    def __init__(self, magic: int = ESP32_MAGIC) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self.flash = bytearray(b"\x55" * 0x20000)
        self.asked: list[int] = []
        self._registers = {MAGIC_REGISTER: magic, FLASH_ID_REGISTER: FLASH_ID}
        self._at = 0
        self._inflate = zlib.decompressobj()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "RomLoader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._slave)
        self._thread.join(5)
        os.close(self._master)

    def _serve(self) -> None:
        for frame in self._frames():
            op, data = frame[1], frame[8:]
            self.asked.append(op)
            for _ in range(8 if op == SYNC else 1):
                self._send(op, *self._answer(op, data))

    def _answer(self, op: int, data: bytes) -> tuple[int, bytes]:
        """Return the value and the data of the answer, with the two bytes of status."""
        if op == SECURITY_INFO:
            return 0, b"\x01\x05"  # this chip has no such command
        if op == READ_REG:
            return self._registers.get(struct.unpack("<I", data)[0], 0), b"\0\0"
        if op == ERASE_FLASH:
            self.flash[:] = b"\xff" * len(self.flash)
        elif op in (FLASH_BEGIN, DEFLATE_BEGIN):
            self._at = struct.unpack("<IIII", data[:16])[3]
            self._inflate = zlib.decompressobj()
        elif op in (FLASH_DATA, DEFLATE_DATA):
            self._write(op, data[16:])
        elif op == MD5:
            at, size = struct.unpack("<II", data[:8])
            return 0, hashlib.md5(self.flash[at : at + size]).digest() + b"\0\0"
        return 0, b"\0\0"

    def _write(self, op: int, data: bytes) -> None:
        plain = self._inflate.decompress(data) if op == DEFLATE_DATA else data
        self.flash[self._at : self._at + len(plain)] = plain
        self._at += len(plain)

    def _send(self, op: int, value: int, data: bytes) -> None:
        packet = struct.pack("<BBHI", 1, op, len(data), value) + data
        packet = packet.replace(b"\xdb", b"\xdb\xdd").replace(b"\xc0", b"\xdb\xdc")
        os.write(self._master, b"\xc0" + packet + b"\xc0")

    def _frames(self) -> Iterator[bytes]:
        came = b""
        while True:
            try:
                came += os.read(self._master, 65536)
            except OSError:
                return  # the other side is closed
            while came.count(b"\xc0") >= 2:
                _, frame, came = came.split(b"\xc0", 2)
                plain = frame.replace(b"\xdb\xdc", b"\xc0").replace(b"\xdb\xdd", b"\xdb")
                if len(plain) >= 8:
                    yield plain
                elif not frame:
                    came = b"\xc0" + came  # an end and a beginning met
