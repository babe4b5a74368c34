"""`python -m gateway VERB`."""

import sys

from gateway.cli import main

if __name__ == "__main__":  # also read again by child processes, which must not start a gateway
    sys.exit(main())
