"""How long to wait after a failure: the same three numbers and jitter as on the board. Pure."""

from collections.abc import Callable

INITIAL_MS = 2_000
FACTOR = 2
CAP_MS = 32_000
_MAX_EXPONENT = 32


def wait_ms(failures: int, random: Callable[[], float]) -> int:
    """Return the wait after `failures` >= 1 failures, in ms: 2..4 s, 4..8 s, up to 32..64 s.

    `base + int(base * random())`, `base` growing from INITIAL_MS by FACTOR up to CAP_MS.
    `random` returns a number in [0, 1); one that always returns 0 leaves the jitter out, which is
    for experiments (`make lab`): nothing that ships does so.
    """
    exponent = min(failures - 1, _MAX_EXPONENT)
    base: int = min(INITIAL_MS * FACTOR**exponent, CAP_MS)
    return base + int(base * random())
