"""`python -m tools.bench cable`: readings a second that a cable of 115,200 baud carries.

The firmware on MicroPython takes them faster than the cable can carry; a gateway stores and
acknowledges them in batches. Only what was acknowledged counts, after the first seconds.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tools import ledger
from tools.cable_scene import NAME, CableScene
from tools.children import Children

BAUD = 115_200
PERIOD_MS = 10
LEAST_PER_S = 60.0
WARM_UP = 200  # readings that must be stored before it counts
LOOK_S = 0.05
GIVE_UP_S = 60.0


async def measure(folder: Path, seconds: float) -> dict[str, Any]:
    async with Children() as children:
        scene = CableScene(folder, children, PERIOD_MS, BAUD)
        async with scene.running():
            await _more_than(scene, WARM_UP)
            begun_with = await _more_than(scene, len(_acknowledged(scene)))  # at a batch's end
            began = time.monotonic()
            await asyncio.sleep(seconds)
            ended_with = await _more_than(scene, len(_acknowledged(scene)))
            took_s = time.monotonic() - began
    faults = scene.book().faults()
    return {
        "readings_per_s": round((ended_with - begun_with) / took_s, 1),
        "baud": BAUD,
        "waits": len(scene.trace().waits_ms),
        "faults": faults,
    }


def _acknowledged(scene: CableScene) -> set[str]:
    return scene.trace().acknowledged


async def _more_than(scene: CableScene, count: int) -> int:
    """Wait until more readings than that are acknowledged; return how many."""
    async with asyncio.timeout(GIVE_UP_S):
        while len(found := _acknowledged(scene)) <= count:
            await asyncio.sleep(LOOK_S)
    stored = set(ledger.stored(scene.database, NAME))
    assert found <= stored, "acknowledged and not stored"
    return len(found)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench cable", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="fieldpost-cable-") as folder:
        found = asyncio.run(measure(Path(folder), args.seconds))
    good = found["readings_per_s"] >= LEAST_PER_S and not found["faults"]
    for name, value in found.items():
        print(f"{name:34} {value}")
    print("the targets hold" if good else "the targets do NOT hold")
    if args.json:
        print(json.dumps(found))
    return 0 if good else 1
