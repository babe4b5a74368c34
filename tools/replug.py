"""`python -m tools.replug`: a cable is pulled out and put back while readings flow.

A gateway and a virtual board, both real, with nothing but that cable between them. Then all
drains, and what the board took is held against what is stored, still waiting, dropped and dead,
by sets of ids. Exit 0 only if the books balance.
"""

import argparse
import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from tools.cable_scene import CableScene
from tools.children import Children

DRAIN_S = 180.0
BAUD = 115_200
PLUGGED_S = (0.5, 6.0)  # some of them end within a frame, before the port is open, or in a wait
UNPLUGGED_S = (0.05, 3.0)
WIFI_S = (5.0, 20.0)  # it takes the board up to 15 s to see that nobody is on the cable


async def run(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    plan = random.Random(args.seed)
    async with Children() as children:
        scene = CableScene(folder, children, args.period_ms, BAUD, has_wifi=args.wifi)
        async with scene.running() as cable:
            for _ in range(args.times):
                await asyncio.sleep(plan.uniform(*PLUGGED_S))
                cable.unplug()
                scene.set_wifi(up=True)
                await asyncio.sleep(plan.uniform(*(WIFI_S if args.wifi else UNPLUGGED_S)))
                scene.set_wifi(up=False)
                cable.plug()
            is_drained = await scene.drained(DRAIN_S)
    book = scene.book()
    faults = book.faults()
    if not book.trace.taken:
        faults.append("the board took nothing")
    if not is_drained:
        faults.append("not everything arrived")
    return {"times": args.times, "seed": args.seed, "counts": book.counts(), "faults": faults}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.replug", description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--wifi", action="store_true", help="unplugged, the board has Wi-Fi")
    parser.add_argument("--period-ms", type=int, default=100, help="between the board's readings")
    parser.add_argument("--seed", type=int, help="makes the plan repeatable")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    if args.seed is None:
        args.seed = random.SystemRandom().randrange(2**32)
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fieldpost-replug-") as folder:
        found = asyncio.run(run(Path(folder), args))
    print(" ".join(f"{name} {count}" for name, count in found["counts"].items()))
    for fault in found["faults"]:
        print(f"FAULT {fault}")
    print("the books do NOT balance" if found["faults"] else "the books balance")
    if args.json:
        print(json.dumps(found))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
