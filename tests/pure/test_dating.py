"""A reading's instant, case by case as the vectors have them."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.dating import date
from gateway.model import Envelope, Reading

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "dating.json").read_text())


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_a_reading_is_dated_as_the_protocol_says(case: dict[str, Any]) -> None:
    reading = Reading(id="r", sensor="s", value=1.0, **case["reading"])
    envelope = Envelope(device="d", readings=[], **case["envelope"])
    dated = date(reading, envelope, case["received_ms"])
    assert dated == (case["at_ms"], case["clock"], case["sent_at_ms"])
