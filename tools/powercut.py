"""`python -m tools.powercut --seed S --seconds N [--json]`: power cuts at every flash operation.

Draws sequences of what an outbox does, runs each on a real littlefs, cuts the power at every flash
operation of it, opens the outbox again and compares it with a model. Exit 0 only if no record was
lost, invented, changed or miscounted, and work went on after every cut.
"""

import argparse
import errno
import json
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.flash_bed import Board, cut_everywhere

Step = tuple[Any, ...]
"""("put", bytes of size), ("take", count) removes the oldest, ("pick", index) removes one,
("bury", index), ("open",) once more. An index counts from the oldest, modulo how many wait."""

FOLDER = "/outbox"
SMALL_FOLDS: dict[str, dict[str, object]] = {"shelf": {"_FOLD_SLOTS": 4}}


@dataclass
class Promises:
    """What the notes before a cut promise of the outbox after it."""

    known: dict[int, bytes] = field(default_factory=dict)  # put has returned
    begun: bytes | None = None  # put has not returned
    going: set[int] = field(default_factory=set)  # a removal, burial or drop has begun
    dropped: set[int] = field(default_factory=set)
    buried: list[int] = field(default_factory=list)
    burying: int | None = None
    settled: int = 0  # nothing up to this key may come back

    @classmethod
    def of(cls, notes: Sequence[Step]) -> "Promises":
        promises = cls()
        for name, *rest in notes:
            getattr(promises, "_" + name)(*rest)
        return promises

    def _begin_put(self, data: bytes) -> None:
        self.begun = data

    def _put(self, key: int, data: bytes) -> None:
        self.begun, self.known[key] = None, data

    def _going(self, keys: Sequence[int]) -> None:
        self.going.update(keys)

    def _drop(self, key: int) -> None:
        self.dropped.add(key)
        self.going.add(key)

    def _begin_bury(self, key: int) -> None:
        self.burying = key
        self.going.add(key)

    def _not_buried(self, key: int) -> None:
        self.burying = None
        self.going.discard(key)

    def _buried(self, key: int) -> None:
        self.burying = None
        self.buried.append(key)

    def _settled(self, key: int) -> None:
        self.settled = key


@dataclass
class OutboxScenario:
    """One sequence of steps on one outbox, as `cut_everywhere` wants it."""

    steps: Sequence[Step]
    bounds: dict[str, int] = field(default_factory=dict)
    constants: dict[str, dict[str, object]] = field(default_factory=SMALL_FOLDS.copy)

    def open(self, board: Board, on_drop: Callable[[int, bytes], None] | None = None) -> Any:
        bounds = {"max_bytes": 100_000, "max_count": 1000, "free_blocks": 8, "max_dead": 3}
        return board.load("outbox").Outbox(FOLDER, on_drop=on_drop, **{**bounds, **self.bounds})

    def run(self, board: Board, note: Callable[[Any], None]) -> None:
        _Run(self, board, note).steps()

    def check(self, board: Board, notes: Sequence[Step]) -> None:
        promises = Promises.of(notes)
        outbox = self.open(board)
        found = dict(outbox.batch(10_000, 1 << 30))
        must(list(found) == sorted(found), "not oldest first")
        must(len(outbox) == len(found), "len() is wrong")
        must(outbox.torn <= 1, "more is torn than one put")

        missing = promises.known.keys() - promises.going - found.keys()
        must(not missing, f"lost {missing}")
        for key, data in found.items():
            if key in promises.known:
                must(data == promises.known[key], f"{key} has changed")
                must(key > promises.settled, f"{key} came back")
            else:
                must(data == promises.begun, f"{key} was never put")
        gone = promises.dropped - found.keys()
        must(outbox.dropped == len(gone), f"dropped {outbox.dropped}, not {len(gone)}")
        self._check_dead(outbox, promises, found)

    def _check_dead(self, outbox: Any, promises: Promises, found: dict[int, bytes]) -> None:
        letters = {key: (reason, data) for key, reason, data in outbox.dead_letters()}
        buried = len(promises.buried)
        most = buried + (promises.burying is not None)
        must(buried <= outbox.dead <= most, f"dead {outbox.dead}, not {buried}..{most}")
        letters_of = promises.buried[-self.bounds.get("max_dead", 3) + 1 :]
        if promises.burying is not None and promises.burying not in found:
            letters_of = [*letters_of, promises.burying]
        for key in letters_of:
            letter = (f"reason {key}", promises.known[key])
            must(letters.get(key) == letter, f"{key} is not in the dead letter")

    def go_on(self, board: Board, notes: Sequence[Step]) -> None:
        promises = Promises.of(notes)
        dropped: list[int] = []
        outbox = self.open(board, lambda key, data: dropped.append(key))
        before = dict(outbox.batch(10_000, 1 << 30))
        added = {outbox.put(data): data for data in (b"%d after" % n for n in range(5))}
        must(min(added) > max([0, *promises.known, *before]), "a key was used again")
        expected = {k: v for k, v in {**before, **added}.items() if k not in dropped}
        outbox = self.open(board)
        must(outbox.batch(10_000, 1 << 30) == list(expected.items()), "not as put")
        while len(outbox):
            outbox.remove([key for key, _ in outbox.batch(3, 1 << 30)])
        outbox = self.open(board)
        must(len(outbox) == 0, "removed, yet back")
        must(outbox.put(b"new") > max(added), "a key was used again")


class _Run:
    """The run itself, with a model beside it that must agree at each step."""

    def __init__(self, scenario: OutboxScenario, board: Board, note: Callable[[Any], None]) -> None:
        self._scenario, self._board, self._note = scenario, board, note
        self._waiting: dict[int, bytes] = {}
        self._ever: dict[int, bytes] = {}
        self._open()

    def steps(self) -> None:
        for name, *rest in self._scenario.steps:
            getattr(self, "_" + name)(*rest)
            self._compare()

    def _compare(self) -> None:
        found = self._outbox.batch(10_000, 1 << 30)
        must(found == list(self._waiting.items()), "the outbox is not what the model says")
        must(len(self._outbox) == len(found), "len() is wrong")
        last = max(self._ever, default=0)
        self._note(("settled", min(self._waiting, default=last + 1) - 1))

    def _open(self) -> None:
        self._outbox = self._scenario.open(self._board, self._drop)
        found = dict(self._outbox.batch(10_000, 1 << 30))
        must(self._waiting.items() <= found.items(), "lost by opening again")
        must(found.items() <= self._ever.items(), "invented by opening again")
        self._waiting = found

    def _drop(self, key: int, data: bytes) -> None:
        must(min(self._waiting) == key, "dropped another than the oldest")
        must(self._waiting.pop(key) == data, "dropped with other bytes")
        self._note(("drop", key))

    def _put(self, size: int) -> None:
        data = payload(len(self._ever), size)
        self._note(("begin_put", data))
        key = self._outbox.put(data)
        must(key > max(self._ever, default=0), "a key was used again")
        self._waiting[key] = self._ever[key] = data
        self._note(("put", key, data))

    def _take(self, count: int) -> None:
        keys = [key for key, _ in self._outbox.batch(count, 1 << 30)]
        self._go(keys)
        self._outbox.remove(keys)

    def _pick(self, index: int) -> None:
        if self._waiting:
            key = list(self._waiting)[index % len(self._waiting)]
            self._go([key])
            self._outbox.remove([key])

    def _bury(self, index: int) -> None:
        if self._waiting:
            key = list(self._waiting)[index % len(self._waiting)]
            self._note(("begin_bury", key))
            try:
                self._outbox.bury(key, f"reason {key}")
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                self._note(("not_buried", key))
            else:
                del self._waiting[key]
                self._note(("buried", key))

    def _go(self, keys: Sequence[int]) -> None:
        self._note(("going", keys))
        for key in keys:
            del self._waiting[key]


def draw(rng: random.Random) -> OutboxScenario:
    """Return a scenario of some 25 steps, with bounds that may be tight."""
    steps: list[Step] = []
    for _ in range(rng.randrange(5, 40)):
        name = rng.choices(["put", "take", "pick", "bury", "open"], [60, 15, 10, 10, 5])[0]
        if name == "put":
            steps.append(("put", rng.choice([1, 70, 110, 120, 121, 400, rng.randrange(1, 1025)])))
        else:
            steps.append((name, rng.randrange(1, 12)) if name != "open" else ("open",))
    bounds = rng.choice([{}, {"max_count": 7}, {"max_bytes": 3000}, {"free_blocks": 16}])
    return OutboxScenario(steps, bounds)


def must(holds: bool, otherwise: str) -> None:
    """Raise AssertionError; unlike `assert` also under `python -O`."""
    if not holds:
        raise AssertionError(otherwise)


def payload(number: int, size: int) -> bytes:
    """Return `size` bytes that no other number has."""
    return (b"%d," % number * size)[:size]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.powercut", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    rng = random.Random(args.seed)
    end_s = time.monotonic() + args.seconds
    scenarios = cuts = 0
    failure = None
    while time.monotonic() < end_s and not failure:
        scenario, seed = draw(rng), rng.randrange(1 << 32)
        try:
            cuts += cut_everywhere(scenario, blocks=24, seed=seed, tears=2, twice_every=4)
        except Exception as error:
            failure = "".join(traceback.format_exception(error)[-4:])
            print(f"{failure}\nbounds {scenario.bounds}\nsteps {scenario.steps}")
        scenarios += 1
    print(
        f"seed {args.seed}: {scenarios} sequences, {cuts} power cuts, {failure or 'nothing lost'}"
    )
    if args.json:
        found = {"seed": args.seed, "sequences": scenarios, "cuts": cuts, "failure": failure}
        print(json.dumps(found))
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
