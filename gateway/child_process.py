"""What a child runs: steps back, so that the front goes first, and only then loads the rest."""

import os
from contextlib import suppress

# Not SCHED_IDLE: a child that never runs could hold a lock of the database for as long. It works
# within a session only: Linux shares out the processor between sessions before it looks at this.
NICE = 19


def main() -> None:
    with suppress(OSError, AttributeError):  # no Unix
        os.nice(NICE)
    from gateway import child  # to load it takes a third of a second of the processor

    child.main()


if __name__ == "__main__":
    main()
