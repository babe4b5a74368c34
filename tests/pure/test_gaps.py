"""Which numbers are missing: the vectors, and any order of arrival against a plain set."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.gaps import Gaps, Range

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "gaps.json").read_text())

numbers = st.integers(1, 30)
ranges = st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_gaps_follow_the_vectors(case: dict[str, Any]) -> None:
    gaps = Gaps(0)
    for step in case["steps"]:
        for n in step.get("arrive", ()):
            gaps.arrive(n)
        if "lost" in step:
            gaps.explain((step["lost"][0], step["lost"][1]))
        assert gaps.highest == step["highest"]
        assert sorted(gaps.open) == [tuple(missing) for missing in step["missing"]]


@given(st.lists(st.one_of(numbers, ranges), max_size=40))
def test_what_is_missing_is_what_neither_arrived_nor_was_explained(
    steps: list[int | Range],
) -> None:
    gaps, arrived, explained = Gaps(0), set[int](), set[int]()
    for step in steps:
        if isinstance(step, int):
            gaps.arrive(step)
            arrived.add(step)
        else:
            gaps.explain(step)
            explained.update(set(range(step[0], step[1] + 1)) - arrived)
        explained -= arrived
    highest = max(arrived, default=0)
    missing = set(range(1, highest)) - arrived - explained
    assert gaps.highest == highest
    assert _numbers(gaps.open) == sorted(missing)
    assert _numbers(gaps.lost) == sorted(explained)
    assert all(gaps.missing(n) == (n in missing) for n in range(1, 31))


def _numbers(ranges: set[Range]) -> list[int]:
    """Return every number of the ranges; one that stands in two of them comes twice."""
    return sorted(n for first, last in ranges for n in range(first, last + 1))
