"""`python -m tools.fleet`: many simulated boards. Exit 0 only if the claim holds.

Each runs the firmware's own uplink. Networks go away, answers are lost, batches come twice,
readings are poison, boards are cloned, clocks are wrong; then everything drains, and what each
board took is held against what the gateway has, by sets of ids.

`--together`: instead, all lose the gateway at the same instant, half of them with jitter in
their waits and half without; it is counted how many come back within one second.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

from tools.children import Children
from tools.fleet_board import Board, Faults, Firmware
from tools.fleet_gateway import Gateway, OwnGateway, Row

DRAIN_S = 240.0  # poison is found by halving, with a wait at each step
LOOK_S = 0.25
POWER_ON_S = 5.0
WRONG_CLOCKS_MS = (-300 * 86_400_000, -7_200_000, 3_600_000, 2000 * 86_400_000)
MISDATED_MS = 15_000  # an instant that is further from the true one is wrong
BACK_S = 150.0  # the longest wait is 64 s, and an attempt may be under way


def crew(
    args: argparse.Namespace, firmware: Firmware, keys: dict[str, bytes | None], url: str
) -> list[Board]:
    """Return the boards, clones among them as a board more of the same name and boot."""
    draw = random.Random(args.seed)
    faults = Faults(args.outage, args.duplicates, args.poison)
    boards = []
    for name, key in keys.items():
        # Not of the seed: the ids of two runs on one gateway must differ.
        boot = f"{random.SystemRandom().randrange(1 << 32):08x}1"
        off_ms = draw.choice(WRONG_CLOCKS_MS) if draw.uniform(0, 100) < args.clock_faults else 0
        for _ in range(2 if draw.uniform(0, 100) < args.clones else 1):
            own = random.Random(draw.getrandbits(64))
            boards.append(
                Board(firmware, name, key, url, boot, own, faults=faults, clock_off_ms=off_ms)
            )
    return boards


@asynccontextmanager
async def living(
    boards: Sequence[Board], period_s: float
) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Let the boards live inside the block; yield what samples, so that it can be ended."""
    sampling = [asyncio.create_task(board.sample(period_s)) for board in boards]
    begin_s = min(period_s, POWER_ON_S)  # not all boards are switched on at once
    delivering = [asyncio.create_task(board.deliver(begin_s)) for board in boards]
    try:
        yield sampling
    finally:
        tasks = {*sampling, *delivering}
        await _end(tasks)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()):
                raise error


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel, and again: Python 3.11 may lose a cancel that meets the end of a `wait_for`."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=1.0)


async def drained(boards: Sequence[Board], seconds: float) -> bool:
    """Wait until no board has anything to deliver; return whether it came to that."""
    try:
        async with asyncio.timeout(seconds):
            while any(board.waiting() for board in boards):
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return False
    return True


def faults_of(name: str, boards: Sequence[Board], rows: Sequence[Row]) -> list[str]:
    """Return a line for each law that is broken by the boards of one name and its rows."""
    boots = {reading_id.rsplit("-", 1)[0] for board in boards for reading_id in board.diary.taken}
    ids = [row.id for row in rows if row.id.rsplit("-", 1)[0] in boots]  # of this run
    stored, is_cloned = set(ids), len(boards) > 1
    taken, acked, dead, waiting, poison = (
        set[str]().union(*sets)
        for sets in zip(
            *(
                (b.diary.taken, b.diary.acknowledged, b.diary.dead, b.waiting(), b.diary.poison)
                for b in boards
            ),
            strict=True,
        )
    )
    broken = {
        "taken and nowhere": taken - stored - dead - waiting,
        "acknowledged and not stored": acked - stored,
        "stored and never taken": stored - taken,
        # Of clones one may be poison, or have another value, where the other's is stored.
        "dead and stored": set() if is_cloned else dead & stored,
        "dead and no poison": set() if is_cloned else dead - poison,
        "stored though poison": set() if is_cloned else stored & poison,
        "misdated": set() if is_cloned else _misdated(boards[0].diary.taken, rows),
    }
    lines = [f"{name}: {len(ids)} {law}, such as {min(ids)}" for law, ids in broken.items() if ids]
    if len(ids) > len(stored):
        lines.append(f"{name}: {len(ids) - len(stored)} ids have two rows")
    return lines + [fault for board in boards for fault in board.diary.faults]


def _misdated(taken: dict[str, int], rows: Sequence[Row]) -> set[str]:
    return {
        row.id for row in rows if row.id in taken and abs(row.at_ms - taken[row.id]) > MISDATED_MS
    }


async def run(gateway: Gateway, args: argparse.Namespace) -> dict[str, Any]:
    """Let the fleet live, and return what was counted and what is wrong."""
    names = [f"fleet-{number:04d}" for number in range(1, args.boards + 1)]
    keys = await gateway.register(names)
    if isinstance(gateway, OwnGateway):
        await gateway.start()
    boards = crew(args, Firmware(), keys, gateway.url)
    async with living(boards, args.period_ms / 1000) as sampling:
        await asyncio.sleep(args.seconds)
        for task in sampling:
            task.cancel()
        is_drained = await drained(boards, DRAIN_S)
    by_name: dict[str, list[Board]] = {}
    for board in boards:
        by_name.setdefault(board.name, []).append(board)
    stored = await gateway.stored(names)
    faults = [fault for name in names for fault in faults_of(name, by_name[name], stored[name])]
    if not is_drained:
        faults.append("not everything arrived")
    return report(boards, stored) | {"seed": args.seed, "faults": faults}


def report(boards: Sequence[Board], stored: dict[str, list[Row]]) -> dict[str, Any]:
    diaries = [board.diary for board in boards]
    exchanges_ms = [ms for diary in diaries for ms in diary.exchanges_ms] or [0.0, 0.0]
    cuts = quantiles(exchanges_ms, n=100)
    waits_ms = [ms for diary in diaries for ms in diary.waits_ms]
    return {
        "boards": len(boards),
        "sent": sum(len(diary.taken) for diary in diaries),
        "acknowledged": sum(len(diary.acknowledged) for diary in diaries),
        "stored": sum(map(len, stored.values())),
        "duplicates": sum(diary.duplicates for diary in diaries),
        "dead": sum(len(diary.dead) for diary in diaries),
        "waiting": sum(len(board.waiting()) for board in boards),
        "waits": len(waits_ms),
        "waited_s": round(sum(waits_ms) / 1000, 1),
        "exchanges": len(exchanges_ms),
        "p50_ms": round(cuts[49], 1),
        "p99_ms": round(cuts[98], 1),
    }


async def together(gateway: OwnGateway, args: argparse.Namespace) -> dict[str, Any]:
    """Take the gateway away from everybody at once; return how many came back in one second."""
    kinds = ("with_jitter", "without_jitter")
    names = {kind: [f"{kind}-{n:04d}" for n in range(1, args.boards + 1)] for kind in kinds}
    keys = await gateway.register([name for each in names.values() for name in each])
    await gateway.start()
    firmware, draw = Firmware(), random.Random(args.seed)
    boards = {
        kind: [
            Board(
                firmware, name, keys[name], gateway.url, "f1ee70001",
                random.Random(draw.getrandbits(64)), jitter=kind == "with_jitter",
            )
            for name in names[kind]
        ]
        for kind in kinds
    }  # fmt: skip
    everybody = [board for each in boards.values() for board in each]
    async with living(everybody, args.period_ms / 1000):
        await asyncio.sleep(max(2.0, 2 * args.period_ms / 1000))
        early = [board.name for board in everybody if not board.diary.answered_at]
        await gateway.kill()
        lost_at = time.monotonic()
        await asyncio.sleep(args.outage_seconds)
        await gateway.start()
        faults = [] if await _are_back(everybody, lost_at) else ["not everybody came back"]
    if early:
        faults.append(f"{len(early)} never reached the gateway before")
    found: dict[str, Any] = {
        f"most_in_one_second_{kind}": most_in_one_second(
            [_back_at(board, lost_at) for board in boards[kind]]
        )
        for kind in kinds
    }
    if found["most_in_one_second_with_jitter"] >= found["most_in_one_second_without_jitter"]:
        faults.append("jitter did not help")
    return {"boards": args.boards, "seed": args.seed} | found | {"faults": faults}


async def _are_back(boards: Sequence[Board], lost_at: float) -> bool:
    try:
        async with asyncio.timeout(BACK_S):
            while any(_back_at(board, lost_at) is None for board in boards):
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return False
    return True


def _back_at(board: Board, lost_at: float) -> float | None:
    return next((at for at in board.diary.answered_at if at > lost_at), None)


def most_in_one_second(instants: Sequence[float | None]) -> int:
    """Return the most instants, in seconds, that any one second holds."""
    known = sorted(at for at in instants if at is not None)
    return max(
        (sum(begin <= at < begin + 1 for at in known) for begin in known),
        default=0,
    )


async def _main(args: argparse.Namespace) -> dict[str, Any]:
    if args.gateway != "own":
        return await run(Gateway(args.gateway.rstrip("/"), args.db), args)
    with tempfile.TemporaryDirectory(prefix="fieldpost-fleet-") as folder:
        async with Children() as children:
            gateway = OwnGateway(Path(folder), children)
            return await (together if args.together else run)(gateway, args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fleet", description=__doc__)
    add = parser.add_argument
    add("--boards", type=int, default=100, help="1 to 5000")
    add("--seconds", type=float, default=30.0, help="of sampling; then everything drains")
    add("--period-ms", type=int, default=1000, help="between a board's readings")
    for name, of in (
        ("outage", "attempts that fail, half of them after the gateway took them"),
        ("duplicates", "batches that are sent again after their answer"),
        ("poison", "readings that can never be stored"),
        ("clones", "boards with a twin of the same name, key and boot"),
        ("clock-faults", "boards whose clock is wrong and believes itself"),
    ):
        add(f"--{name}", type=_per_cent, default=0.0, metavar="P", help=f"per cent of {of}")
    add("--gateway", default="own", metavar="URL", help="http://HOST:PORT, or own: starts one")
    add("--db", type=Path, help="database of the gateway at URL; none: it is open")
    add("--together", action="store_true", help="count who comes back in the same second")
    add("--outage-seconds", type=float, default=60.0, help="for --together")
    add("--seed", type=int, help="makes the plan repeatable")
    add("--json", action="store_true", help="one object on the last line")
    return parser


def _per_cent(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 100")
    return share


def main(argv: list[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if not 1 <= args.boards <= 5000:
        parser.error("--boards goes from 1 to 5000")
    if args.together and args.gateway != "own":
        parser.error("--together kills the gateway, so it takes only its own")
    if args.seed is None:
        args.seed = random.SystemRandom().randrange(2**32)
    found = asyncio.run(_main(args))
    for name, value in found.items():
        if name != "faults":
            print(f"{name:34} {value}")
    for fault in found["faults"]:
        print(f"FAULT {fault}")
    print("the claim does NOT hold" if found["faults"] else "the claim holds")
    if args.json:
        print(json.dumps(found))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
