"""A cut at every flash operation loses nothing of the outbox, and no boot name comes twice."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.flash_bed import Board, Flash, cut_everywhere
from tools.powercut import OutboxScenario

EXAMPLES = 30  # `make campaign` looks further, by tools.powercut

PUT = ("put", 70)
LONG = ("put", 700)
OPEN = ("open",)
MORE_THAN_A_BLOCK: dict[str, dict[str, object]] = {"shelf": {"_FOLD_SLOTS": 36}}


def take(count: int) -> tuple[str, int]:
    return ("take", count)


SCENARIOS = {
    "one reading at a time": OutboxScenario([PUT, take(1)] * 12),
    "four sensors": OutboxScenario([*[PUT] * 4, take(64)] * 3),
    "an outage and its draining": OutboxScenario([*[PUT] * 13, take(3), take(3), take(64)]),
    "a full segment": OutboxScenario(
        [*[("put", 120)] * 38, take(20), take(64)], constants=MORE_THAN_A_BLOCK
    ),
    "out of order": OutboxScenario([*[PUT] * 9, ("pick", 5), ("pick", 0), ("pick", 6), take(64)]),
    "buried": OutboxScenario([*[PUT] * 7, *[("bury", 5), ("bury", 0), ("bury", 1)] * 2, take(64)]),
    "full by count": OutboxScenario([PUT] * 16, {"max_count": 6}),
    "full by bytes": OutboxScenario([PUT] * 14, {"max_bytes": 500}),
    "long records": OutboxScenario([*[LONG] * 11, take(2), *[LONG] * 3, take(64), LONG]),
    "full flash": OutboxScenario([*[LONG] * 19, take(8)], {"free_blocks": 4}),
    "opened often": OutboxScenario([PUT, OPEN, PUT, OPEN, PUT, take(2), OPEN, PUT, OPEN, take(1)]),
}


NO_ROOM = OutboxScenario([*[LONG] * 9, ("bury", 2), take(2), *[PUT] * 9], {"free_blocks": 0})


def test_no_cut_on_a_flash_without_room_loses_more_than_was_dropped() -> None:
    assert cut_everywhere(NO_ROOM, blocks=8) > 20


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_cut_loses_a_reading(name: str) -> None:
    assert cut_everywhere(SCENARIOS[name], blocks=12) > 20


def steps() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    size = st.sampled_from([1, 70, 120, 121, 400]) | st.integers(1, 1024)
    index = st.integers(0, 11)
    put = st.tuples(st.just("put"), size)
    other = st.tuples(st.sampled_from(["take", "pick", "bury"]), index) | st.just(OPEN)
    return st.lists(put | put | other, min_size=5, max_size=30)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=steps(),
    bounds=st.sampled_from([{}, {"max_count": 7}, {"max_bytes": 2000}, {"free_blocks": 14}]),
    seed=st.integers(0, 1 << 32),
)
def test_no_sequence_loses_a_reading(
    steps: Sequence[tuple[Any, ...]], bounds: dict[str, int], seed: int
) -> None:
    cut_everywhere(OutboxScenario(steps, bounds), blocks=24, seed=seed)


def test_replay_is_what_a_flash_without_power_holds() -> None:
    scenario = SCENARIOS["an outage and its draining"]
    whole = Flash(24)
    with Board(whole, scenario.constants):
        image = bytearray(whole.image)
    blank = bytes(image)
    whole.journal.clear()
    with Board(whole, scenario.constants) as board:
        scenario.run(board, lambda note: None)
    for done, operation in enumerate(whole.journal):
        flash = Flash(image=blank, power_for=done)
        with Board(flash, scenario.constants) as board, suppress(OSError):
            scenario.run(board, lambda note: None)
        assert flash.image == image
        operation.apply(image)


class BootScenario:
    """Boots again and again: no boot may have the name of another."""

    constants: dict[str, dict[str, object]] = {}  # noqa: RUF012  # never changed

    def run(self, board: Board, note: Callable[[Any], None]) -> None:
        for _ in range(12):
            note(self._boot(board))

    def check(self, board: Board, notes: Sequence[Any]) -> None:
        name = self._boot(board)
        assert name not in notes, f"{name} was used before"
        if notes:
            assert name[:8] == notes[0][:8], "began again under a new nonce"

    def go_on(self, board: Board, notes: Sequence[Any]) -> None:
        assert len({*notes, self._boot(board), self._boot(board)}) == len(set(notes)) + 2

    def _boot(self, board: Board) -> str:
        name: str = board.load("boots").next_boot("/boot", random.Random(0).randbytes)
        return name


def test_no_cut_gives_a_boot_name_twice() -> None:
    assert cut_everywhere(BootScenario(), blocks=8, tears=4, twice_every=1) > 100
