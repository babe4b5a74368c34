"""The files with the secrets: made once, whole, and for our eyes only."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import keys
from gateway.errors import Misconfigured
from gateway.keys import Keys


def test_the_secrets_are_made_when_they_are_missing_and_stay_the_same(tmp_path: Path) -> None:
    first = Keys.open(tmp_path)
    assert Keys.open(tmp_path) == first
    assert (tmp_path / "master.key").read_text() == first.master.hex() + "\n"
    assert (tmp_path / "operator.token").read_text().strip() == first.operator_token
    assert len(first.master) == 32
    assert len(first.operator_token) == 64


def test_two_gateways_have_nothing_in_common(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    a, b = Keys.open(tmp_path / "a"), Keys.open(tmp_path / "b")
    assert a.master != b.master
    assert a.operator_token != b.operator_token


def test_only_the_owner_can_read_the_secrets(tmp_path: Path) -> None:
    Keys.open(tmp_path)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"master.key": 0o600, "operator.token": 0o600}


def test_processes_that_start_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from gateway.keys import Keys\n"
        "sys.stdin.readline()\n"
        "keys = Keys.open(pathlib.Path(sys.argv[1]))\n"
        "print(keys.master.hex(), keys.operator_token)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {process.communicate(timeout=30)[0] for process in started}
    assert len(said) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["master.key", "operator.token"]


def test_a_key_that_came_in_between_is_not_replaced(tmp_path: Path) -> None:
    made = Keys.open(tmp_path)
    keys._make(tmp_path / "master.key")  # as a process does that found none a moment ago
    assert Keys.open(tmp_path) == made
    assert sorted(path.name for path in tmp_path.iterdir()) == ["master.key", "operator.token"]


@pytest.mark.parametrize("held", ["", "abc\n", "g" * 64, "A" * 64, "\xff"])
def test_a_key_file_that_holds_no_key_is_refused_and_left_alone(tmp_path: Path, held: str) -> None:
    path = tmp_path / "master.key"
    path.write_bytes(held.encode("latin-1"))
    with pytest.raises(Misconfigured, match=r"master\.key"):
        Keys.open(tmp_path)
    assert path.read_bytes() == held.encode("latin-1")


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"missing/master\.key can not be read or made"):
        Keys.open(tmp_path / "missing")


def test_a_key_that_others_can_read_raises_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Keys.open(tmp_path)
    (tmp_path / "master.key").chmod(0o644)
    with caplog.at_level(logging.WARNING):
        Keys.open(tmp_path)
    assert [record.args[0] for record in caplog.records if record.args] == [tmp_path / "master.key"]


def test_in_memory_nothing_is_written() -> None:
    assert Keys.open(None).master != Keys.open(None).master


def test_the_secrets_do_not_show_when_the_object_is_printed(tmp_path: Path) -> None:
    assert repr(Keys.open(tmp_path)) == "Keys()"
