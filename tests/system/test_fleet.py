"""The fleet: the claim holds of a real gateway, and would be seen not to hold."""

import json
from dataclasses import dataclass, field

import pytest

from tools import fleet
from tools.fleet_board import Diary
from tools.fleet_gateway import Row

BOOT = "fleet-0001-7f3a17c21"
IDS = [f"{BOOT}-{n}" for n in range(1, 6)]


def run(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[str, object]]:
    code = fleet.main([*flags, "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_books_of_a_fleet_with_every_fault_balance(capsys):
    code, found = run(
        capsys, "--boards", "12", "--seconds", "3", "--period-ms", "200", "--duplicates", "30",
        "--clones", "20", "--clock-faults", "30", "--outage", "2", "--seed", "5",
    )  # fmt: skip
    assert (code, found["faults"]) == (0, [])
    assert found["boards"] > 12, "clones are boards as well"
    assert found["stored"] > 100
    assert found["duplicates"] > 0


def test_with_jitter_fewer_boards_come_back_in_the_same_second(capsys):
    code, found = run(
        capsys, "--together", "--boards", "40", "--outage-seconds", "3", "--period-ms", "500",
        "--seed", "5",
    )  # fmt: skip
    assert (code, found["faults"]) == (0, [])
    assert found["most_in_one_second_with_jitter"] < found["most_in_one_second_without_jitter"]


@dataclass
class Board:
    diary: Diary
    left: set[str] = field(default_factory=set)

    def waiting(self) -> set[str]:
        return self.left


def kept(**what: object) -> Board:
    """Return a board that took five readings: three acknowledged, one dead, one waiting."""
    usual = {
        "taken": dict.fromkeys(IDS, 1000),
        "poison": {IDS[3]},
        "acknowledged": set(IDS[:3]),
        "dead": {IDS[3]},
    }
    return Board(Diary(**(usual | what)), {IDS[4]})


def rows(*ids: str, at_ms: int = 1000) -> list[Row]:
    return [Row(one, at_ms) for one in ids]


def test_books_that_balance_have_no_fault():
    assert fleet.faults_of("fleet-0001", [kept()], rows(*IDS[:3])) == []


@pytest.mark.parametrize(
    ("law", "board", "stored"),
    [
        ("taken and nowhere", kept(acknowledged=set(IDS[:2])), rows(*IDS[:2])),
        ("acknowledged and not stored", kept(acknowledged=set(IDS)), rows(*IDS[:3])),
        ("stored and never taken", kept(), rows(*IDS[:3], f"{BOOT}-9")),
        ("dead and stored", kept(), rows(*IDS[:4])),
        ("stored though poison", kept(), rows(*IDS[:4])),
        ("dead and no poison", kept(poison=set()), rows(*IDS[:3])),
        ("misdated", kept(), rows(*IDS[:3], at_ms=9_000_000)),
        ("ids have two rows", kept(), rows(*IDS[:3], IDS[0])),
        ("stored twice", kept(faults=["fleet-0001: 1 stored twice"]), rows(*IDS[:3])),
    ],
)
def test_each_broken_law_is_named(law, board, stored):
    assert [fault for fault in fleet.faults_of("fleet-0001", [board], stored) if law in fault]


def test_what_an_earlier_fleet_left_is_not_held_against_this_one():
    earlier = rows("fleet-0001-00000000123-1")
    assert fleet.faults_of("fleet-0001", [kept()], rows(*IDS[:3]) + earlier) == []


def test_one_second_may_begin_at_any_instant():
    assert fleet.most_in_one_second([0.9, 1.1, 1.8, None, 5.0]) == 3
    assert fleet.most_in_one_second([]) == 0
