"""Answer, look-up and work, as a board measures them."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from gateway import registry
from gateway.config import Config
from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Site
from tools.scene import VirtualBoard, free_port
from tools.virtual_board.flags import FIRMWARE

TITLE = "Three clocks"
EXAMPLE = FIRMWARE / "examples" / "three_clocks.py"

_DEVICE = "three-clocks"
_PERIOD_MS = 10_000  # it takes no readings
_WITHIN_S = 90.0
_CLOCKS = re.compile(r"answer (\d+) ms, look-up (\d+) ms, work (\d+) ms\s+looks (\d+)\s")
_OVER = re.compile(r"blinked \d+ times\s|job \d+: (failed|discarded)")


class Clocks(NamedTuple):
    """What the board printed, in ms, and how often it looked."""

    answer_ms: int
    look_up_ms: int
    work_ms: int
    looks: int


async def run(site: Site) -> Finding:
    config = Config(db=str(site.folder / "clocks.db"), port=free_port())
    key = await registry.add(config, _DEVICE)
    await registry.let_ask(config, _DEVICE, True)
    url = f"http://127.0.0.1:{config.port}"
    await _serve(site, config, url)
    firmware = with_example(site.folder / "firmware")
    flags = ("--firmware", firmware)
    board = VirtualBoard(site.folder, _DEVICE, key, url, _PERIOD_MS, *flags)
    trace = site.folder / f"{_DEVICE}.trace"
    await board.start(site.children)
    try:
        await site.until(lambda: _has(board.log, _OVER), "the board's round is over", _WITHIN_S)
    finally:
        await board.kill()
    printed = _text(board.log)
    found = _CLOCKS.search(printed)
    if found is None:
        raise RuntimeError(f"the board printed no three clocks: {printed[-500:]}")
    lines = [line for line in printed.splitlines() if line.startswith(("job ", "answer "))]
    return _tell(site, Clocks(*map(int, found.groups())), lines, levels(trace))


def with_example(folder: Path) -> Path:
    """Make a folder of the firmware's files, with the example as what the board starts."""
    folder.mkdir()
    for source in FIRMWARE.glob("*.py"):
        shutil.copy(source, folder)
    shutil.copy(EXAMPLE, folder / "main.py")
    return folder


def levels(trace: Path) -> list[int]:
    """Return what the light was set to, one after another."""
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    return [int(event["led"]) for event in events if "led" in event]


async def _serve(site: Site, config: Config, url: str) -> None:
    """Start the gateway as it ships: not open, so the board's questions must be signed."""
    with site.log.open("ab") as log:
        await site.children.start(
            "the gateway", "-m", "gateway", "serve", "--db", config.db, "--port", config.port,
            stdout=log, stderr=log,
        )  # fmt: skip

    async def answers() -> bool:
        try:
            async with site.http.get(f"{url}/healthz") as answer:
                return answer.status == 200
        except OSError:
            return False

    await site.until(answers, "the gateway answers")


async def _has(log: Path, what: re.Pattern[str]) -> bool:
    return what.search(_text(log)) is not None


def _text(log: Path) -> str:
    return log.read_text(errors="replace")


def _tell(site: Site, clocks: Clocks, lines: list[str], lit: list[int]) -> Finding:
    _ = site.gettext
    finding = Finding(_(TITLE))
    finding.say(_(
        "A board asks the gateway for a report and does not stand still meanwhile: the gateway says"
        " \"received\" at once, and the board looks now and then how far it is. So there are three"
        " clocks: how long the answer took, how long a look, and how long the work."
    ))  # fmt: skip
    finding.say(_("What the board printed on its serial line: %(lines)s", lines="; ".join(lines)))
    names = [_("answer"), _("look-up"), _("work")]
    values = [clocks.answer_ms, clocks.look_up_ms, clocks.work_ms]
    rows = [(name, f"{site.number(value)} ms") for name, value in zip(names, values, strict=True)]
    rows += [(_("looks until it was done"), site.number(clocks.looks)),
             (_("times the light went on"), site.number(lit.count(1)))]  # fmt: skip
    finding.show(Table((_("what"), _("as the board prints it")), rows))
    finding.show(Bars(_("The three clocks"), names, {_("time"): [float(v) for v in values]}, "ms"))
    finding.say(_(
        "The light is on while the board talks with the gateway, and blinks three times at the end."
        " The same program runs on a real board: device/examples/three_clocks.py."
    ))  # fmt: skip
    finding.claim(_("The work took longer than the answer: the board did not wait for it"),
                  clocks.work_ms > clocks.answer_ms)  # fmt: skip
    finding.claim(_("The work took longer than a look"), clocks.work_ms > clocks.look_up_ms)
    finding.claim(_("The light went on for each exchange, and three times at the end"),
                  lit.count(1) >= clocks.looks + 1 + 3)  # fmt: skip
    finding.figures = {**clocks._asdict(), "times_lit": lit.count(1)}
    return finding
