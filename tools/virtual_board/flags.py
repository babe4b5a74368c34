"""The command line, read and checked."""

import argparse
import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

BLOCK_BYTES = 4096
MIN_BLOCKS = 16  # less holds no firmware
TICKS_PERIOD = 1 << 30
FIRMWARE = Path(__file__).resolve().parents[2] / "device"

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}


class Flags(NamedTuple):
    flash: Path
    gateway: str | None
    key: str | None
    tls_cert: str | None
    device: str | None
    period_ms: int | None
    heap_bytes: int
    size_bytes: int | None
    trace: Path | None
    link: Path | None
    firmware: Path
    epoch: int
    ticks_start: int
    simulated: bool
    bare: bool
    cable: bool
    pty: str | None

    @property
    def over(self) -> dict[str, object]:
        """What wins over the image's config.json."""
        wins = {
            "gateway": self.gateway,
            "key": self.key,
            "tls_cert": self.tls_cert,
            "device": self.device,
            "period_ms": self.period_ms,
            "cable": True if self.cable else None,
        }
        return {name: value for name, value in wins.items() if value is not None}


def parse(argv: Sequence[str] | None) -> Flags:
    """Read the command line; a bad value ends the process with exit code 2 and says why."""
    return Flags(**vars(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.virtual_board",
        description="Run a board without hardware. SIGTERM or Ctrl-C cuts its power.",
    )
    add = parser.add_argument
    add("--flash", type=Path, required=True, metavar="FILE", help="its flash; made if missing")
    add("--gateway", type=_url, metavar="URL", help="http(s)://…, cable:; else the image's")
    add("--key", type=_key, metavar="HEX", help="64 hex characters; none: the gateway is --open")
    add("--tls-cert", metavar="BASE64", help="as tools.certificate prints it; for an https URL")
    add("--device", type=_device, metavar="ID", help="default: esp32- and a MAC from FILE's path")
    add("--period-ms", type=_period, metavar="N", help="a reading of each sensor every N ms")
    add("--heap", type=_bytes, default="192K", metavar="N", dest="heap_bytes")
    add("--size", type=_size, metavar="N", dest="size_bytes", help="of a new flash (512K)")
    add("--trace", type=Path, metavar="FILE", help="append what happens, as JSON lines")
    add("--link", type=Path, metavar="FILE", help="Wi-Fi is up while this file says `up`")
    add("--firmware", type=_folder, default=str(FIRMWARE), metavar="DIR")
    add("--epoch", type=int, choices=(1970, 2000), default=2000, help="where time() starts")
    add("--ticks-start", type=_ticks, default=0, metavar="N", help="ticks_ms() at power-on")
    add("--pty", nargs="?", const="", metavar="PATH", help="a serial port; PATH becomes a link")
    add("--cable", action="store_true", help="deliver over that port too, not by Wi-Fi alone")
    add("--bare", action="store_true", help="put no firmware on the flash: `make flash` does")
    add("--simulated", action="store_true", help="CPython and a folder instead of the real thing")
    return parser


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([KkMm]?)", text)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; say 192K or 1M")
    return int(found[1]) * _UNITS[found[2].upper()]


def _size(text: str) -> int:
    size = _bytes(text)
    if size % BLOCK_BYTES or size // BLOCK_BYTES < MIN_BLOCKS:
        least = MIN_BLOCKS * BLOCK_BYTES // 1024
        raise argparse.ArgumentTypeError(f"{text!r}: whole 4K blocks, {least}K at least")
    return size


def _url(text: str) -> str:
    if text == "cable:":
        return text
    try:
        url = urlsplit(text)
        is_web = url.scheme in ("http", "https")
        good = is_web and url.hostname and (url.port or 80) and not url.query
    except ValueError:
        good = False
    if not good:
        raise argparse.ArgumentTypeError(f"{text!r} is not http(s)://HOST[:PORT]")
    return text.rstrip("/")


def _key(text: str) -> str:
    if len(text) != 64 or set(text) - set(string.hexdigits):
        raise argparse.ArgumentTypeError("a key is 64 hex characters (`gateway devices add`)")
    return text.lower()


def _device(text: str) -> str:
    if not _DEVICE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: 1 to 64 of A-Z a-z 0-9 _ . -")
    return text


def _period(text: str) -> int:
    if not text.isdigit() or not 10 <= int(text) <= 7 * 24 * 3600 * 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: 10 ms to 7 days, in milliseconds")
    return int(text)


def _ticks(text: str) -> int:
    if not text.isdigit() or int(text) >= TICKS_PERIOD:
        raise argparse.ArgumentTypeError(f"{text!r}: 0 to {TICKS_PERIOD - 1}")
    return int(text)


def _folder(text: str) -> Path:
    if not (Path(text) / "main.py").is_file():
        raise argparse.ArgumentTypeError(f"{text!r} holds no main.py")
    return Path(text)
