"""What the device tests are given."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start each test of a test_pure_*.py file in an empty folder, as on MicroPython."""
    if request.path.name.startswith("test_pure_"):
        monkeypatch.chdir(tmp_path)
