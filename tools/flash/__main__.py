"""`python -m tools.flash`: `make flash`, `make doctor`, `make monitor`, `make provision` and
`make backup-board`."""

import sys
from collections.abc import Callable, Sequence

from tools.flash import flashing, verbs
from tools.flash.options import Options, parse
from tools.flash.steps import say
from tools.flash.trouble import Trouble

VERBS: dict[str, Callable[[Options], int]] = {
    "flash": flashing.run,
    "doctor": verbs.watched(verbs.doctor),
    "monitor": verbs.watched(verbs.monitor),
    "provision": verbs.watched(verbs.provision),
    "backup": verbs.watched(verbs.backup),
}


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    try:
        return VERBS[options.verb](options)
    except Trouble as trouble:
        say(f"{trouble.what}")
        say(f"  -> {trouble.do}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
