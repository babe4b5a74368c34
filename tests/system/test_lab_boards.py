"""The experiments with boards, letters and the page, small, with the real processes."""

import asyncio
import json

import pytest

from tools.lab.__main__ import EXPERIMENTS, QUICK, Experiment, find
from tools.lab.finding import Finding

pytestmark = pytest.mark.long

# Each waits for something most of its time: so they run side by side, but for the one that
# measures how long answers take.
LANES = ((7,), (11, 12), (8, 6))


@pytest.fixture(scope="module")
def found() -> dict[int, Finding]:
    async def lane(numbers: tuple[int, ...]) -> dict[int, Finding]:
        return {
            number: await find(Experiment.load(EXPERIMENTS[number]), 1, QUICK, "en")
            for number in numbers
        }

    async def all_lanes() -> dict[int, Finding]:
        lanes = await asyncio.gather(*map(lane, LANES))
        return {number: finding for part in lanes for number, finding in part.items()}

    return asyncio.run(all_lanes())


@pytest.mark.parametrize("number", [6, 7, 8, 11, 12])
def test_all_that_an_experiment_claims_holds(found: dict[int, Finding], number: int) -> None:
    finding = found[number]
    assert not [claim.text for claim in finding.claims if not claim.holds]
    assert len(finding.claims) > 2
    assert any(not isinstance(part, str) for part in finding.parts)
    assert json.loads(json.dumps(finding.figures))
