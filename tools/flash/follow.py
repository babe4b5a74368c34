"""Follows a board after its reset until the gateway has stored a reading of it."""

import re
import time
from collections import deque
from collections.abc import Callable

from tools.flash.gateway import Gateway
from tools.flash.line import Line
from tools.flash.trouble import Trouble

PATIENCE_S = 90.0
CABLE_PATIENCE_S = 45.0
ASK_EVERY_S = 0.4
_FAILURES = 2  # in a row: a first may be bad luck
_LAST_LINES = 20


class Log:
    """What a board says, in lines; of the frames for a gateway on a cable only that they were."""

    def __init__(self) -> None:
        self._torn = b""

    def feed(self, data: bytes) -> list[str]:
        *lines, self._torn = (self._torn + data).replace(b"\r", b"").split(b"\n")
        return [_shown(line) for line in lines if line.strip()]


class Judge:
    """Tells from the lines of a board's log what keeps it from delivering. Raises Trouble."""

    def __init__(self, ssid: str, url: str) -> None:
        self._ssid = ssid
        self._url = url
        self._address: str | None = None
        self._failures = 0

    def hear(self, line: str) -> None:
        if found := re.search(r"wifi: up, (\S+)", line):
            self._address = found[1]
            self._failures = 0
        elif "wifi: wrong password" in line:
            raise Trouble("wrong_password", ssid=self._ssid)
        elif "wifi: no such network" in line:
            raise Trouble("no_network", ssid=self._ssid)
        elif "not sent: key refused" in line:
            raise Trouble("key_refused")
        elif self._address and (found := re.search(r"not sent: (?!answer \d)(.*)", line)):
            self._failures += 1
            if self._failures >= _FAILURES:
                details = {"address": self._address, "url": self._url, "said": found[1]}
                raise Trouble("no_gateway", **details)


def until_stored(
    line: Line,
    gateway: Gateway,
    device: str,
    since_ms: int,
    judge: Judge,
    tell: Callable[[str], None],
    patience_s: float = PATIENCE_S,
) -> str:
    """Return the id of the first reading that is stored. Raises Trouble, Broken."""
    log, last = Log(), deque([""], maxlen=_LAST_LINES)
    give_up_at = time.monotonic() + patience_s
    ask_at = 0.0
    while time.monotonic() < give_up_at:
        for said in log.feed(line.read(ASK_EVERY_S)):
            last.append(said)
            tell(said)
            judge.hear(said)
        if time.monotonic() >= ask_at:
            if found := gateway.stored_since(device, since_ms):
                return str(found["reading_id"])
            ask_at = time.monotonic() + ASK_EVERY_S
    raise Trouble("not_stored", device=device, seconds=round(patience_s), said=last[-1])


def until_stored_by_cable(
    port: str, gateway: Gateway, device: str, since_ms: int, patience_s: float = CABLE_PATIENCE_S
) -> str:
    """Return the id of the first reading that is stored while the gateway has the port."""
    give_up_at = time.monotonic() + patience_s
    while time.monotonic() < give_up_at:
        if found := gateway.stored_since(device, since_ms):
            return str(found["reading_id"])
        time.sleep(ASK_EVERY_S)
    raise Trouble("no_cable", port=port, device=device, seconds=round(patience_s))


def _shown(line: bytes) -> str:
    said, mark, _ = line.partition(b"\x1e")
    text = said.decode(errors="replace").strip("\x04> ")
    return text + ("[readings, for a gateway on this cable]" if mark else "")
