"""`python -m tools.outage`: the gateway is away for a while. Exit 0 only if the claim holds.

Afterwards everything that the boards took meanwhile has arrived, oldest first, and no two boards
kept step: an outage must not make them come back, or knock, together.
"""

import argparse
import asyncio
import json
import sqlite3
import tempfile
from contextlib import closing
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from typing import Any

from tools.children import Children
from tools.scene import Scene

STEP_MS = 250  # nearer than this two attempts are together; two in a row are in step


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


def in_step(waits_ms: dict[str, list[int]]) -> list[str]:
    """Return the pairs of boards that knocked together twice in a row.

    The instants are the sums of the waits: a refused connection takes no time.
    """
    instants = {name: list(accumulate(waits)) for name, waits in waits_ms.items()}
    pairs = []
    for one, other in combinations(sorted(instants), 2):
        together = [
            any(abs(at_ms - with_ms) <= STEP_MS for with_ms in instants[other])
            for at_ms in instants[one]
        ]
        if any(a and b for a, b in pairwise(together)):
            pairs.append(f"{one} and {other}")
    return pairs


async def run(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    async with Children() as children:
        scene = Scene(folder, children)
        await scene.open(args.boards, args.period_ms)
        await scene.drained()
        await scene.kill_gateway()
        before = {board.name: len(board.trace().waits_ms) for board in scene.boards}
        await asyncio.sleep(args.seconds)
        waits = {b.name: b.trace().waits_ms[before[b.name] :] for b in scene.boards}
        await scene.start_gateway()
        drained = await scene.drained()
    faults = [fault for book in scene.books() for fault in book.faults()]
    if not drained:
        faults.append("not everything arrived")
    late = out_of_order(scene.database)
    if late:
        faults.append(f"{late} readings arrived after a later one")
    faults += [f"{pair} kept step" for pair in in_step(waits)]
    return {"waits_ms": waits, "faults": faults}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.outage", description=__doc__)
    parser.add_argument("--boards", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="without a gateway")
    parser.add_argument("--period-ms", type=int, default=500, help="between a board's readings")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="fieldpost-outage-") as folder:
        found = asyncio.run(run(Path(folder), args))
    for name, waits_ms in found["waits_ms"].items():
        print(f"{name:12} waited " + " ".join(f"{wait_ms / 1000:.1f}" for wait_ms in waits_ms))
    for fault in found["faults"]:
        print(f"FAULT {fault}")
    print("the claim does NOT hold" if found["faults"] else "everything arrived, oldest first")
    if args.json:
        print(json.dumps(found))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
