"""`python -m tools.outage`: the gateway is away for a while. Exit 0 only if the claim holds.

Afterwards everything that the boards took meanwhile has arrived, oldest first, and no two boards
kept step: an outage must not make them come back, or knock, together.
"""

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from contextlib import closing
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from tools.children import Children
from tools.scene import Scene, VirtualBoard

STEP_S = 0.1  # waits that differ by less are equal
IN_A_ROW = 3  # so many equal ones are no chance: 1 in 8,000 for the first three waits of a pair
LOOK_S = 0.05
WARM_UP_S = 3.0


def out_of_order(database: Path) -> int:
    """Return how many readings arrived after a later one of the same boot."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT boot_id, n FROM reading ORDER BY id").fetchall()
    last: dict[int, int] = {}
    late = 0
    for boot, n in rows:
        late += n < last.get(boot, 0)
        last[boot] = max(n, last.get(boot, 0))
    return late


def in_step(attempts_s: dict[str, list[float]]) -> list[str]:
    """Return the pairs of boards that waited equally long, several times in a row.

    When they began to fail does not matter: boards without jitter keep their distance for ever.
    """
    waits = {name: [b - a for a, b in pairwise(at_s)] for name, at_s in attempts_s.items()}
    pairs = []
    for one, other in combinations(sorted(waits), 2):
        equal = [abs(a - b) <= STEP_S for a, b in zip(waits[one], waits[other], strict=False)]
        if any(all(equal[at : at + IN_A_ROW]) for at in range(len(equal) - IN_A_ROW + 1)):
            pairs.append(f"{one} and {other}")
    return pairs


async def watch(boards: list[VirtualBoard], seconds: float) -> dict[str, list[float]]:
    """Return when each board's attempts failed, in seconds from now: each leaves a wait."""
    seen = {board.name: len(board.trace().waits_ms) for board in boards}
    failed_s: dict[str, list[float]] = {board.name: [] for board in boards}
    began = time.monotonic()
    while (now_s := time.monotonic() - began) < seconds:
        for board in boards:
            count = len(board.trace().waits_ms)
            failed_s[board.name] += [now_s] * (count - seen[board.name])
            seen[board.name] = count
        await asyncio.sleep(LOOK_S)
    return failed_s


async def run(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    async with Children() as children:
        scene = Scene(folder, children)
        await scene.open(args.boards, args.period_ms)
        await asyncio.sleep(WARM_UP_S)
        online = await scene.drained()
        await scene.kill_gateway()
        failed_s = await watch(scene.boards, args.seconds)
        await scene.start_gateway()
        drained = await scene.drained()
    books = scene.books()
    faults = [fault for book in books for fault in book.faults()]
    faults += [f"{book.device} took nothing" for book in books if not book.trace.taken]
    faults += [f"{name} never tried" for name, instants in failed_s.items() if not instants]
    if not (online and drained):
        faults.append("not everything arrived")
    late = out_of_order(scene.database)
    if late:
        faults.append(f"{late} readings arrived after a later one")
    faults += [f"{pair} kept step" for pair in in_step(failed_s)]
    return {"failed_s": failed_s, "faults": faults}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.outage", description=__doc__)
    parser.add_argument("--boards", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="without a gateway")
    parser.add_argument("--period-ms", type=int, default=500, help="between a board's readings")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="fieldpost-outage-") as folder:
        found = asyncio.run(run(Path(folder), args))
    for name, failed_s in found["failed_s"].items():
        print(f"{name:12} tried at " + " ".join(f"{at_s:.1f}" for at_s in failed_s) + " s")
    for fault in found["faults"]:
        print(f"FAULT {fault}")
    print("the claim does NOT hold" if found["faults"] else "everything arrived, oldest first")
    if args.json:
        print(json.dumps(found))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
