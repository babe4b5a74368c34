"""What the outage campaign calls keeping step."""

from tools.outage import in_step


def test_boards_that_wait_equally_long_keep_step_whenever_they_began() -> None:
    assert in_step({"a": [0.1, 2.1, 6.1, 14.1], "b": [0.5, 2.5, 6.5, 14.5]}) == ["a and b"]


def test_boards_whose_waits_differ_do_not() -> None:
    assert in_step({"a": [0.1, 2.1, 6.1, 14.1], "b": [0.1, 2.1, 8.0, 14.1]}) == []


def test_two_equal_waits_are_chance() -> None:
    assert in_step({"a": [0.1, 2.1, 6.1], "b": [0.5, 2.5, 6.5]}) == []
