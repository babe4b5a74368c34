"""The experiments with boards, letters and the page, small, with the real processes."""

import json

import pytest

from tests.system.lanes import found_in
from tools.lab.finding import Finding

pytestmark = pytest.mark.long

# Each waits for something most of its time: so they run side by side, but for the one that
# measures how long answers take.
LANES = ((7,), (11, 12), (8, 6))


@pytest.fixture(scope="module")
def found() -> dict[int, Finding]:
    return found_in(LANES)


@pytest.mark.parametrize("number", [6, 7, 8, 11, 12])
def test_all_that_an_experiment_claims_holds(found: dict[int, Finding], number: int) -> None:
    finding = found[number]
    assert not [claim.text for claim in finding.claims if not claim.holds]
    assert len(finding.claims) > 2
    assert any(not isinstance(part, str) for part in finding.parts)
    assert json.loads(json.dumps(finding.figures))
