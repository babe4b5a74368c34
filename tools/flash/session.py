"""One board at work: its line, what is on it, and each thing that is done to it as a step."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from tools.flash import ask, copying, follow, image, lock, ports, survey, wifi
from tools.flash.gateway import Gateway, address_for, is_cable, token
from tools.flash.line import Broken, Line, Silent
from tools.flash.options import Options
from tools.flash.steps import Steps, say
from tools.flash.survey import Survey
from tools.flash.trouble import Trouble


class Session:
    """A board at its REPL, with its port held."""

    def __init__(self, options: Options, line: Line, steps: Steps) -> None:
        self.options = options
        self.line = line
        self.steps = steps
        self.survey = self._look()

    def _look(self) -> Survey:
        with self.steps.step("interrupt the board") as step:
            reach(self.line)
        with self.steps.step("read what is on it") as step:
            found = survey.look(self.line)
            name = "a virtual board" if found.virtual else found.machine
            step.found = f"MicroPython {found.version_text()}, {name}, {len(found.files)} files"
        return found

    @property
    def device(self) -> str:
        named = self.options.device or _setting(self.survey, "device")
        return str(named or f"esp32-{self.survey.id}")

    def require_fit(self) -> None:
        """Raise Trouble if the firmware can not live there."""
        if self.survey.is_old:
            raise Trouble("old_micropython", version=self.survey.version_text())
        if self.survey.is_fat and not self.options.erase:
            raise Trouble("fat")

    # The steps.

    def network(self) -> wifi.Wifi | None:
        """Return the Wi-Fi for the board; None leaves what it has."""
        with self.steps.step("Wi-Fi") as step:
            if self.survey.virtual or is_cable(self.options.gateway):
                step.found = "a virtual board needs none" if self.survey.virtual else "a cable"
                return None
            found = None if self.options.ask_wifi else wifi.known(self.options.data)
            kept = _setting(self.survey, "wifi")
            if found is None and not self.options.ask_wifi and isinstance(kept, dict):
                step.found = f"{kept.get('ssid')}, as on the board"
                return None
            found = found or wifi.asked(self.options.data)
            step.found = found["ssid"]
            return found

    def find_gateway(self) -> Gateway:
        with self.steps.step("find the gateway") as step:
            url = address_for(self.options.gateway, virtual=self.survey.virtual)
            found = Gateway(url, token(self.options.data))
            found.require_alive()
            step.found = found.url
        return found

    def config(self, gateway: Gateway, network: wifi.Wifi | None) -> bytes:
        """Register the board, and return its config.json."""
        with self.steps.step("register the board") as step:
            ours: dict[str, object] = {"device": self.device, "gateway": gateway.url}
            ours["key"] = gateway.key(self.device)
            if network is not None:
                ours["wifi"] = network
            step.found = self.device
        return image.config(self.survey.config, ours)

    def erase(self) -> None:
        """Remove everything, if the person agrees to what is lost."""
        waiting = survey.readings_waiting(self.line) if self.survey.has_outbox else 0
        lost = "an unknown number of" if waiting is None else waiting
        question = f"Erasing loses {lost} readings that wait on the board. Erase?"
        if not ask.agree(question, yes=self.options.yes):
            raise SystemExit("flash: nothing was changed")
        with self.steps.step("erase") as step:
            survey.wipe(self.line, as_littlefs=self.survey.is_fat)
            self.survey = survey.look(self.line)
            step.found = f"{lost} readings are lost"

    def copy(self, files: dict[str, bytes]) -> list[str]:
        """Put these files on the board; return which of them differed."""
        copier = copying.Copier(self.line, self.survey.free)
        with self.steps.step("compare") as step:
            differing = copier.differing(files)
            step.found = f"{len(differing)} of {len(files)} files differ"
        if not differing:
            return []
        with self.steps.step("copy") as step:
            progress = lambda done, of: step.progress(done, of, "bytes")  # noqa: E731
            sent = copier.put({name: files[name] for name in differing}, progress)
            step.found = f"{sent} bytes, verified"
        with self.steps.step("rename"):
            copier.rename(differing)
        return differing

    def follow(self, gateway: Gateway) -> None:
        """Reset the board, and wait for its first reading."""
        since_ms = gateway.now_ms()
        with self.steps.step("reset"):
            if gateway.is_cable:
                self.line.reset_later()
                self.line.give_up()
            else:
                self.line.reset()
        with self.steps.step("first reading") as step:
            step.found = self._first_reading(gateway, since_ms)
        say(f"first reading of {self.device} stored after {step.took_s():.0f} s")

    def _first_reading(self, gateway: Gateway, since_ms: int) -> str:
        if gateway.is_cable:
            return follow.until_stored_by_cable(self.line.port, gateway, self.device, since_ms)
        known, kept = wifi.known(self.options.data), _setting(self.survey, "wifi")
        network = known or (kept if isinstance(kept, dict) else {})
        judge = follow.Judge(network.get("ssid") or "that the board knows", gateway.url)
        tell = lambda said: say(f"    | {said}")  # noqa: E731
        return follow.until_stored(self.line, gateway, self.device, since_ms, judge, tell)


@contextmanager
def line(options: Options) -> Iterator[Line]:
    """Find the port, and hold it. Raises Trouble."""
    port = ports.find(options.port)
    ports.require(port)
    with lock.held(options.data, port) as held:
        ports.require_free(port)
        try:
            opened = Line(port)
        except OSError as error:
            raise Trouble("busy_port", port=port, holder=f"somebody ({error})") from error
        opened.lock = held
        with opened:
            yield opened


def reach(board: Line) -> None:
    """Be at the board's REPL. Raises Trouble if there is none."""
    try:
        board.reach()
    except Silent as silent:
        raise _why_silent(board.port, silent.seen) from None


def _why_silent(port: str, seen: bytes) -> Trouble:
    if b"waiting for download" in seen or b"DOWNLOAD(" in seen:
        return Trouble("boot_mode")
    if b"WDT" in seen or seen.count(b"rst:0x") > 2:
        return Trouble("watchdog")
    if b"MicroPython" in seen or b"REPL" in seen or b">>>" in seen:
        last = seen.decode(errors="replace").strip()[-60:]
        return Trouble("raw_repl_stuck", said=last)
    if not seen.strip() or not _is_serial(port):
        return Trouble("no_answer", port=port)
    return Trouble("no_micropython")


def _is_serial(port: str) -> bool:
    try:
        return stat.S_ISCHR(os.stat(port).st_mode)
    except OSError:
        return True  # Windows


def _setting(found: Survey, key: str) -> object:
    try:
        settings = json.loads(found.config or "{}")
        return settings.get(key)
    except (ValueError, AttributeError):
        return None


__all__ = ["Broken", "Session", "line", "reach"]
