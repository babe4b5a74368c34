"""Runs one bench: `python -m tools.bench NAME [its flags]`, a module here with `main(argv)`."""

import importlib
import sys

BENCHES = ("ingest", "jobs", "front", "status", "imports", "outbox", "heap", "cable")


def main(argv: list[str]) -> int:
    """Return the bench's exit code: 0 only if its targets hold; 2 if there is no such bench."""
    if not argv or argv[0] not in BENCHES:
        print(f"usage: python -m tools.bench {{{'|'.join(BENCHES)}}} [--json]", file=sys.stderr)
        return 2
    code: int = importlib.import_module(f"tools.bench.{argv[0]}").main(argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
