"""The pure device files pass the very same tests on the interpreter that the boards run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FILES = sorted(Path(__file__).resolve().parent.glob("test_pure_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_passes_on_micropython(file: Path, micropython: Callable[..., Any]) -> None:
    result = micropython("run_on_micropython.py", file)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_runner_sees_a_failing_test(tmp_path: Path, micropython: Callable[..., Any]) -> None:
    file = tmp_path / "test_pure_wrong.py"
    file.write_text("def test_right():\n    assert True\ndef test_wrong():\n    assert 1 == 2\n")
    result = micropython("run_on_micropython.py", file)
    assert result.returncode == 1
    assert "FAIL test_wrong" in result.stdout
    assert "1 failed of 2" in result.stdout
