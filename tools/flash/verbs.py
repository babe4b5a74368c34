"""The smaller verbs: what is wrong, the log, the settings alone, a copy of the outbox."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tools.flash import image, ports, session
from tools.flash.follow import Log
from tools.flash.line import Broken, Line, Refused
from tools.flash.options import Options
from tools.flash.session import Session
from tools.flash.steps import Steps, say
from tools.flash.trouble import Trouble

_KEPT = ("/outbox.d", "/boot", "/crash.txt", "/config.json")


def doctor(options: Options) -> int:
    """Check one thing after the other, change nothing; return 0 if the board could be flashed."""
    steps = Steps()
    for program in ports.thieves():
        say(f"{program} runs, and may take the port: {ports.remedy(program)}")
    with session.line(options) as line:
        with steps.step("port") as step:
            step.found = line.port
        board = Session(options, line, steps)
        try:
            with steps.step("MicroPython and its file system") as step:
                board.require_fit()
                step.found = f"{board.survey.free // 1024} of {board.survey.total // 1024} KiB free"
            board.find_gateway()
        finally:
            line.reset()
    say("nothing is wrong")
    return 0


def monitor(options: Options) -> int:
    """Follow the board's log until Ctrl-C. Nothing is reset and nothing interrupted."""
    log = Log()
    with session.line(options) as line:
        say(f"{line.port}, until Ctrl-C")
        while True:
            for said in log.feed(line.read(1.0)):
                print(said, flush=True)


def provision(options: Options) -> int:
    """Write config.json only, and follow the board until a reading is stored."""
    steps = Steps()
    with session.line(options) as line:
        board = Session(options, line, steps)
        try:
            network = board.network()
            gateway = board.find_gateway()
            board.copy({image.CONFIG: board.config(gateway, network)})
        except Trouble:
            line.reset()
            raise
        board.follow(gateway)
    return 0


def backup(options: Options) -> int:
    """Copy what can not be had again to data/boards/<device>-<time>/."""
    steps = Steps()
    with session.line(options) as line:
        board = Session(options, line, steps)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        folder = options.data / "boards" / f"{board.device}-{stamp}"
        try:
            with steps.step("copy from the board") as step:
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700)  # config.json holds secrets
                copied = sum(_fetch(line, path, folder) for path in _KEPT)
                step.found = f"{copied} files, to {folder}"
        finally:
            line.reset()
    return 0


def _fetch(line: Line, path: str, folder: Path) -> int:
    """Copy a file, or what is in a folder; return how many files it was."""
    try:
        inside = line.ask(
            f"import json,os\nprint(json.dumps([f[0] for f in os.ilistdir({path!r})]))"
        )
    except Refused:
        inside = None
    if inside is not None:
        return sum(_fetch(line, f"{path}/{name}", folder) for name in inside)
    try:
        content = line.fetch(path)
    except OSError:
        return 0  # the board has none
    to = folder / path.strip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(content)
    return 1


def watched(act: Callable[[Options], int]) -> Callable[[Options], int]:
    """Return the verb with a board that goes away told as a trouble."""

    def watched_act(options: Options) -> int:
        try:
            return act(options)
        except Broken as broken:
            print(f"flash: the board went away: {broken}", file=sys.stderr)
            raise Trouble("watchdog") from broken

    return watched_act
