"""`python -m tools.prove`: the crash campaign. Exit 0 only if the books balance.

A gateway and some virtual boards, all real; either side is killed with SIGKILL at random instants
and started again, links go down and up, then everything drains and what each board took is held
against what is stored, still waiting, dropped and dead, by sets of ids.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from tools.children import Children
from tools.scene import DRAIN_S, Scene

GATEWAY_AWAY_S = (0.0, 6.0)
BOARD_AWAY_S = (0.0, 2.0)
LINK_DOWN_S = (0.5, 5.0)
GATEWAYS_SHARE = 0.4  # of the kills

Act = Callable[[], Coroutine[Any, Any, Any]]


class Torment:
    """Kills and cuts at random instants, and mends a while later. All is drawn before it begins."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._random = random.Random(seed)
        self._mending: list[asyncio.Task[None]] = []
        self.counts = {"gateway": 0, "board": 0, "link": 0}

    async def run(self, kills: int, links: int, seconds: float) -> None:
        """Do it within `seconds`; return when all is mended."""
        acts = [self._kill() for _ in range(kills)] + [self._cut_link() for _ in range(links)]
        plan = [(self._random.uniform(0.5, seconds), act) for act in acts]
        began = time.monotonic()
        for at_s, act in sorted(plan, key=lambda planned: planned[0]):
            await asyncio.sleep(max(0.0, began + at_s - time.monotonic()))
            await act()
        await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
        await asyncio.gather(*self._mending)

    def _kill(self) -> Act:
        scene = self._scene
        if self._random.random() < GATEWAYS_SHARE:
            away_s = self._random.uniform(*GATEWAY_AWAY_S)
            return partial(self._do, "gateway", scene.kill_gateway, away_s, scene.start_gateway)
        board, away_s = self._random.choice(scene.boards), self._random.uniform(*BOARD_AWAY_S)
        return partial(self._do, "board", board.kill, away_s, partial(scene.start, board))

    def _cut_link(self) -> Act:
        board, down_s = self._random.choice(self._scene.boards), self._random.uniform(*LINK_DOWN_S)

        async def set_link(up: bool) -> bool:
            board.set_link(up=up)
            return True

        return partial(self._do, "link", partial(set_link, False), down_s, partial(set_link, True))

    async def _do(self, what: str, harm: Act, away_s: float, mend: Act) -> None:
        if not await harm():
            return  # it is away already

        async def mend_later() -> None:
            await asyncio.sleep(away_s)
            await mend()

        self.counts[what] += 1
        self._mending.append(asyncio.create_task(mend_later()))


async def prove(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Run the campaign; return what was counted and what is wrong."""
    async with Children() as children:
        scene = Scene(folder, children)
        await scene.open(args.boards, args.period_ms)
        torment = Torment(scene, args.seed)
        await torment.run(args.kills, args.links, args.seconds)
        print(f"tormented ({torment.counts}); draining", file=sys.stderr, flush=True)
        drained = await scene.drained()
    books = scene.books()
    faults = [fault for book in books for fault in book.faults()]
    faults += [f"{book.device} took nothing" for book in books if not book.trace.taken]
    if not drained:
        faults.append(f"not everything arrived within {DRAIN_S:g} s of calm")
    return {
        "seed": args.seed,
        "kills": torment.counts,
        "boards": {book.device: book.counts() for book in books},
        "faults": faults,
    }


def _show(found: dict[str, Any]) -> None:
    names = ("taken", "stored", "waiting", "dropped", "dead", "starts")
    print(f"{'board':12}" + "".join(f"{name:>9}" for name in names))
    for device, counts in found["boards"].items():
        print(f"{device:12}" + "".join(f"{counts[name]:9}" for name in names))
    print("killed: " + ", ".join(f"{what} {count}" for what, count in found["kills"].items()))
    for fault in found["faults"]:
        print(f"FAULT {fault}")
    print("the books do NOT balance" if found["faults"] else "the books balance")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prove", description=__doc__)
    parser.add_argument("--boards", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20, help="SIGKILLs, of either side")
    parser.add_argument("--links", type=int, default=10, help="how often a Wi-Fi link goes down")
    parser.add_argument("--seconds", type=float, default=60.0, help="of torment, before the calm")
    parser.add_argument("--period-ms", type=int, default=200, help="between a board's readings")
    parser.add_argument("--seed", type=int, help="makes the plan repeatable")
    parser.add_argument("--keep", type=Path, help="keep databases, flashes, traces and logs here")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    if args.seed is None:
        args.seed = random.SystemRandom().randrange(2**32)
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fieldpost-prove-") as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = asyncio.run(prove(folder, args))
    _show(found)
    if args.json:
        print(json.dumps(found))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
