"""The verdicts on every body of the vectors, as a board gets them over the wire."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.house import House, problem_of

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "verdicts.json").read_text("utf-8"))
DEVICE = "esp32-a4cf12b3d4e5"


def sent(vector: Any) -> bytes:
    if "body_hex" in vector:
        return bytes.fromhex(vector["body_hex"])
    return "".join(text * times for text, times in vector["body"]).encode()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
async def test_a_board_gets_the_verdict_of_the_vector(house: House, vector: Any) -> None:
    await house.register(DEVICE)
    answer = await house.signed(DEVICE, sent(vector))
    assert answer.status == vector["status"]
    if answer.status == 200:
        told = ("stored", "duplicates", "rejected")
        assert {name: answer.json[name] for name in told} == {name: vector[name] for name in told}
    else:
        problem_of(answer)
