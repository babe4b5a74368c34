"""A chip's ROM loader, by esptool: the one part that no virtual board has."""

import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

from tools.flash.trouble import Trouble

TIMEOUT_S = 300
BAUD = "460800"


class Chip(NamedTuple):
    """offset: where its bootloader, with which a MicroPython .bin begins, stands in its flash.
    number: which chip an image says it is for. board: mpflash's name of its MicroPython."""

    offset: int
    number: int
    board: str


# Offsets and numbers from esptool's targets (BOOTLOADER_FLASH_OFFSET, IMAGE_CHIP_ID).
CHIPS = {
    "ESP32": Chip(0x1000, 0, "ESP32_GENERIC"),
    "ESP32-S2": Chip(0x1000, 2, "ESP32_GENERIC_S2"),
    "ESP32-C3": Chip(0x0, 5, "ESP32_GENERIC_C3"),
    "ESP32-S3": Chip(0x0, 9, "ESP32_GENERIC_S3"),
    "ESP32-C6": Chip(0x0, 13, "ESP32_GENERIC_C6"),
}

_IMAGE_MAGIC = 0xE9
_NUMBER_AT = 12  # esp_image_header_t.chip_id, two bytes, little-endian


class Loader(Protocol):
    def chip(self) -> str:
        """Return the chip's name, as in CHIPS. Raises Trouble."""

    def erase(self) -> None: ...

    def write(self, offset: int, file: Path) -> None: ...


class Esptool:
    """wires: whether the port has those by which esptool brings a chip into its loader and out.
    attempts: how often it knocks at the loader."""

    def __init__(self, port: str, *, wires: bool = True, attempts: int = 7) -> None:
        self._attempts = str(attempts)
        self._port = port
        reset = ("default-reset", "hard-reset") if wires else ("no-reset", "no-reset")
        self._resets = ("--before", reset[0], "--after", reset[1])

    def chip(self) -> str:
        said = self._run("read-mac")
        found = re.search(r"Detecting chip type\.* *(ESP[\w-]+)", said)
        if not found:
            raise Trouble("not_written", said=_last(said))
        return found[1]

    def erase(self) -> None:
        self._run("erase-flash")

    def write(self, offset: int, file: Path) -> None:
        self._run("write-flash", f"{offset:#x}", str(file))

    def _run(self, *command: str) -> str:
        patience = ("--connect-attempts", self._attempts)
        how = ("--port", self._port, "--baud", BAUD, *patience, *self._resets)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "esptool", *how, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise Trouble("not_written", said=f"no end after {TIMEOUT_S} s") from None
        if done.returncode:
            raise Trouble("not_written", said=_last(done.stdout))
        return done.stdout


def require_fit(file: Path, chip: str) -> None:
    """Raise Trouble unless the image is for this chip."""
    head = file.read_bytes()[: _NUMBER_AT + 2]
    if chip not in CHIPS:
        raise Trouble("wrong_chip", file=file, meant=", ".join(CHIPS), found=chip)
    meant = "no ESP32 at all"
    if len(head) == _NUMBER_AT + 2 and head[0] == _IMAGE_MAGIC:
        number: int = struct.unpack_from("<H", head, _NUMBER_AT)[0]
        if number == CHIPS[chip].number:
            return
        names = {one.number: name for name, one in CHIPS.items()}
        meant = names.get(number, f"chip number {number}")
    raise Trouble("wrong_chip", file=file, meant=meant, found=chip)


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "error" in line.lower()), (lines or ["?"])[-1])
