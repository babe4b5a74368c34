"""The command line, read and checked."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tools.flash import image

VERBS = {
    "flash": "put the firmware on a board, and follow it until its first reading is stored",
    "doctor": "say what is wrong, or that nothing is",
    "monitor": "follow the board's log, until Ctrl-C",
    "provision": "write only the board's config.json: Wi-Fi, gateway, key",
    "backup": "copy the board's outbox, boot file and settings to the data folder",
}


class Options(NamedTuple):
    verb: str
    port: str | None
    gateway: str | None
    device: str | None
    firmware: Path | None
    files: Path
    data: Path
    erase: bool
    dry_run: bool
    yes: bool
    ask_wifi: bool


def parse(argv: Sequence[str] | None) -> Options:
    """Read the command line; a bad value ends the process with exit code 2 and says why."""
    return Options(**vars(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    told = "\n".join(f"  {verb:10} {text}" for verb, text in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tools.flash",
        description=told,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("verb", nargs="?", choices=list(VERBS), default="flash")
    add("--port", metavar="DEV", help="the board's serial port; needed where there are several")
    add("--gateway", type=_url, metavar="URL", help="as the board reaches it; else this machine")
    add("--device", metavar="NAME", help="the board's name; else the one it has")
    add("--firmware", type=_file, metavar="FILE", help="write this MicroPython first (.bin)")
    add("--files", type=Path, default=image.FIRMWARE, metavar="DIR", help="other firmware files")
    add("--data", type=Path, default=Path("data"), metavar="DIR", help="the gateway's data folder")
    add("--erase", action="store_true", help="remove everything from the board first")
    add("--dry-run", action="store_true", help="look, and say what would be done")
    add("--yes", action="store_true", help="do not ask whether to erase or to write MicroPython")
    add("--ask-wifi", action="store_true", help="ask for the Wi-Fi again")
    return parser


def _url(text: str) -> str:
    address = text.removeprefix("cable:")
    if text != "cable:" and (not address.startswith("http://") or not address[7:]):
        raise argparse.ArgumentTypeError(f"{text!r} is not http://HOST[:PORT], or cable:")
    return text.rstrip("/")


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)
