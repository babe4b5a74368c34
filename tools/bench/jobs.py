"""`python -m tools.bench jobs`: this queue beside three others from PyPI, as ratios in one run.

All with 4 workers, jobs that do nothing, and `synchronous=FULL`. Enqueued: one after another, each
on the disk before the next. Drained: claimed, done, and recorded as done. Picked up: from asking,
on an idle queue, until the job begins. The limit is `sqlite3` alone, a claim and a finish for each
job, each a commit. Rounds are interleaved, figures are medians of the rounds; databases stand on
the disk below the present folder.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tools.bench import peers

OURS = "fieldpost"
LEAST_DRAIN_RATIO = 3.0
MOST_PICKUP_RATIO = 1.0

Rounds = dict[str, list[dict[str, Any]]]


def one_round(folder: Path, python: str, jobs: int, picks: int) -> dict[str, dict[str, Any]]:
    """Return what each queue measured, by name."""
    script = str(Path(__file__).with_name("peer_queues.py"))
    commands = {name: [python, script, name] for name in peers.NAMES}
    commands[OURS] = [sys.executable, "-m", "tools.bench.our_queue"]
    found = {}
    for name, command in commands.items():
        place = folder / name
        place.mkdir()
        # The one that backs off while idle needs a while for each pick.
        words = [*command, str(place), str(jobs), str(picks // 4 if name == "huey" else picks)]
        done = subprocess.run(words, check=True, capture_output=True, timeout=300)
        found[name] = json.loads(done.stdout)
        shutil.rmtree(place)
    return found


def report(rounds: Rounds) -> dict[str, Any]:
    """Return the figures, and ours over those of the peer that does best at each."""

    def of(name: str, figure: str) -> float:
        return float(median(one[figure] for one in rounds[name]))

    def p(name: str, cut: int) -> float:
        cuts = [quantiles(one["picked_ms"], n=100)[cut - 1] for one in rounds[name]]
        return float(median(cuts))

    def over(figure: str) -> float:
        """Return the median of ours over the fastest peer's, round by round."""
        fastest = [max(one) for one in zip(
            *([each[figure] for each in rounds[name]] for name in peers.NAMES), strict=True
        )]  # fmt: skip
        ours = [one[figure] for one in rounds[OURS]]
        return float(median(one / peer for one, peer in zip(ours, fastest, strict=True)))

    found: dict[str, Any] = {
        "drain_ratio": over("drained_per_s"),
        "enqueue_ratio": over("enqueued_per_s"),
        "pickup_p50_ratio": p(OURS, 50) / min(p(name, 50) for name in peers.NAMES),
        "pickup_p99_ratio": p(OURS, 99) / min(p(name, 99) for name in peers.NAMES),
        "drained_over_raw": median(one["drained_per_s"] / one["raw_per_s"] for one in rounds[OURS]),
        "raw_per_s": of(OURS, "raw_per_s"),
        "enqueued_together_per_s": of(OURS, "enqueued_together_per_s"),
    }
    for name in (OURS, *peers.NAMES):
        key = name.replace("-", "_")
        found[f"{key}_enqueued_per_s"] = of(name, "enqueued_per_s")
        found[f"{key}_drained_per_s"] = of(name, "drained_per_s")
        found[f"{key}_pickup_p50_ms"] = p(name, 50)
        found[f"{key}_pickup_p99_ms"] = p(name, 99)
    return {name: round(value, 3) for name, value in found.items()}


def holds(found: dict[str, Any]) -> bool:
    return bool(
        found["drain_ratio"] >= LEAST_DRAIN_RATIO and found["pickup_p99_ratio"] <= MOST_PICKUP_RATIO
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench jobs", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4000, help="drained in a round")
    parser.add_argument("--picks", type=int, default=200, help="picked up in a round")
    parser.add_argument("--folder", type=Path, default=Path(), help="on a disk, never on tmpfs")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    rounds: Rounds = {}
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=args.folder) as folder:
        for number in range(args.rounds):
            measured = one_round(Path(folder), peers.python(), args.jobs, args.picks)
            for name, found in measured.items():
                rounds.setdefault(name, []).append(found)
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    found = report(rounds)
    for name, value in found.items():
        print(f"{name:34} {value}")
    good = holds(found)
    print("the targets hold" if good else "the targets do NOT hold")
    if args.json:
        print(json.dumps(found))
    return 0 if good else 1
