"""docs/states.md says of the moves what the one table has."""

import re
from pathlib import Path

from gateway.states import State, Verb, diagram

PAGE = Path(__file__).resolve().parents[2] / "docs" / "states.md"
TEXT = PAGE.read_text(encoding="utf-8")
FIRST_CELLS = re.findall(r"^\| (\w+) \|", TEXT, re.MULTILINE)


def test_the_diagram_is_the_one_of_the_table() -> None:
    assert f"```mermaid\n{diagram()}```\n" in TEXT


def test_every_state_and_every_move_has_its_row_and_there_is_no_other() -> None:
    beside = ["state", "move", "enqueue", "prune"]  # the heads, the birth and the end of a job
    assert sorted(FIRST_CELLS) == sorted([*State, *Verb, *beside])


def test_every_move_of_the_diagram_is_told_of() -> None:
    assert set(re.findall(r" --> \S+: (\w+)", diagram())) <= set(FIRST_CELLS)
