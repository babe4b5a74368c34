# PURE: how long to wait after failures. The same three numbers and the same test
# vectors as the queue's on the gateway.

INITIAL_MS = 2000
FACTOR = 2
CAP_MS = 32000

# Far beyond the cap, and small enough for a power of any sensible factor.
_MAX_EXPONENT = 30


def wait_ms(failures, random, initial_ms=INITIAL_MS, factor=FACTOR, cap_ms=CAP_MS):
    """Milliseconds to wait after `failures` >= 1 failures; random() is in [0, 1)."""
    exponent = min(max(failures, 1) - 1, _MAX_EXPONENT)
    return jittered(min(initial_ms * factor**exponent, cap_ms), random)


def at_cap_ms(random):
    """The longest of the usual waits: for faults that a person has to mend."""
    return jittered(CAP_MS, random)


def jittered(base_ms, random):
    # Without jitter all boards come back in the same second after an outage.
    return base_ms + int(base_ms * random())
