"""`make flash`: all of it, in order."""

from tools.flash import ask, image, micropython, session, survey
from tools.flash.copying import Copier
from tools.flash.line import Broken, Line
from tools.flash.loader import Esptool
from tools.flash.options import Options
from tools.flash.session import Session
from tools.flash.steps import Steps, say
from tools.flash.trouble import Trouble

# What a new MicroPython helps against. A chip that is empty says nothing at all.
_FOR_LACK = {"no_micropython", "no_answer"}


def run(options: Options) -> int:
    """Flash the board; return the exit code. Raises Trouble."""
    steps = Steps()
    with session.line(options) as line:
        try:
            bring(options, line, steps)
        except Broken as broken:
            # Something reset the board in the middle, its watchdog for instance. Nothing is lost.
            say(f"the board went away ({broken}); once more from the start")
            try:
                bring(options, line, steps)
            except Broken as again:
                raise Trouble("watchdog") from again
    say(f"done in {steps.took_s():.1f} s")
    return 0


def bring(options: Options, line: Line, steps: Steps, attempts: int = 7) -> None:
    """Flash the board, with MicroPython if it has none. Raises Trouble, Broken.

    attempts: how often its ROM loader is knocked at.
    """
    try:
        _flash(options, line, steps)
    except Trouble as trouble:
        lacks = trouble.name in _FOR_LACK and (options.firmware or ask.somebody_there())
        if options.dry_run or not (lacks or trouble.name == "old_micropython"):
            raise
        _write_micropython(options, line, steps, trouble, attempts)
        _flash(options, line, steps)


def _write_micropython(
    options: Options, line: Line, steps: Steps, trouble: Trouble, attempts: int
) -> None:
    say(trouble.what)
    # Whoever named a file has answered already. An old one's file system outlives a new one.
    erase = options.erase or trouble.name != "old_micropython"
    question = "Write MicroPython to it" + (", and erase all that it holds?" if erase else "?")
    if not ask.agree(question, yes=options.yes or options.firmware is not None):
        raise trouble
    line.close()
    folder = options.data / "micropython"
    loader = Esptool(line.port, wires=line.has_wires, attempts=attempts)
    try:
        micropython.write(
            loader, options.firmware, folder, steps, micropython.downloaded, erase=erase
        )
    except Trouble as second:
        # The loader did not answer either: it is not MicroPython that is missing.
        raise trouble if trouble.name == "no_answer" else second from second
    finally:
        line.open()


def _flash(options: Options, line: Line, steps: Steps) -> None:
    board = Session(options, line, steps)
    try:
        board.require_fit()
        _work(board)
    except (Trouble, SystemExit):
        board.line.reset()  # it goes on with what it has
        raise


def _work(board: Session) -> None:
    network = board.network()
    gateway = board.find_gateway()
    if board.options.dry_run:
        _tell_what_would_be_done(board)
        return
    config = board.config(gateway, network)
    if board.options.erase:
        board.erase()
    if not board.copy(_files(board, config)):
        say("nothing had to be copied")
    board.follow(gateway)


def _files(board: Session, config: bytes) -> dict[str, bytes]:
    """Return what should be on the board, main.py last: until it is there the old one starts."""
    with board.steps.step("compile") as step:
        built = image.build(board.survey.mpy, board.options.files)
        main = built.pop(image.MAIN)
        step.found = f"{len(built) + 1} files, {sum(map(len, built.values())) + len(main)} bytes"
    return {**built, image.CONFIG: config, image.MAIN: main}


def _tell_what_would_be_done(board: Session) -> None:
    built = image.build(board.survey.mpy, board.options.files)
    differing = Copier(board.line, board.survey.free).differing(built)
    if board.options.erase:
        waiting = survey.readings_waiting(board.line) if board.survey.has_outbox else 0
        say(f"would erase the board, and {waiting} readings with it")
    say(f"would register {board.device} and write its config.json")
    say(f"would copy {len(differing)} of {len(built)} files: {', '.join(differing) or 'none'}")
    board.line.reset()
    say("nothing was changed (DRY_RUN)")
