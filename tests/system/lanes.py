"""Experiments of the lab, found at small scale, several side by side."""

import asyncio
from collections.abc import Sequence

from tools.lab.__main__ import EXPERIMENTS, QUICK, Experiment, find
from tools.lab.finding import Finding


def found_in(lanes: Sequence[Sequence[int]]) -> dict[int, Finding]:
    """Return what was found, by number; those of one lane run one after another."""

    async def lane(numbers: Sequence[int]) -> dict[int, Finding]:
        return {
            number: await find(Experiment.load(EXPERIMENTS[number]), 1, QUICK, "en")
            for number in numbers
        }

    async def all_lanes() -> dict[int, Finding]:
        parts = await asyncio.gather(*map(lane, lanes))
        return {number: finding for part in parts for number, finding in part.items()}

    return asyncio.run(all_lanes())
