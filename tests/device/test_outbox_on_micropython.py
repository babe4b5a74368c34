"""The outbox on MicroPython's own littlefs: power cuts there, and a heap like a board's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_no_cut_loses_a_reading_on_micropython(micropython: Callable[..., Any]) -> None:
    result = micropython("cut_on_micropython.py")
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(result.stdout.split()[1]) > 100


def test_4000_readings_wait_in_a_small_heap(
    micropython: Callable[..., Any], tmp_path: Path
) -> None:
    result = micropython("fill_on_micropython.py", tmp_path / "flash.img", heap="192K")
    assert result.returncode == 0, result.stdout + result.stderr
    waiting = dict(zip(*[iter(result.stdout.split())] * 2, strict=True))
    assert int(waiting["opened"]) < 16 * 1024
