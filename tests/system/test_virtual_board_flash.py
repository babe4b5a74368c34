"""The flash of a virtual board: made, kept, brought up to date; another file is never taken."""

import os
import signal
from pathlib import Path

import pytest

from tests.system.board_process import BoardProcess, firmware, needs_micropython
from tools.virtual_board import lock
from tools.virtual_board.refused import Refused

pytestmark = needs_micropython
flash = pytest.importorskip("tools.virtual_board.flash", reason="littlefs-python is missing")

LIST = """
import os
print("files", *sorted(os.listdir("/")))
print("blocks", os.statvfs("/")[2])
"""
KIB = 1024


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return firmware(tmp_path / "firmware", LIST, part="X = 1\n")


@pytest.fixture
def image(tmp_path: Path, source: Path) -> Path:
    os.close(flash.make(tmp_path / "board.img", 256 * KIB, source))
    return tmp_path / "board.img"


def updated(image: Path, source: Path, size_bytes: int | None = None) -> list[str]:
    fd = lock.take(image, wait_s=0)
    try:
        return list(flash.update(image, fd, size_bytes, source))
    finally:
        os.close(fd)


def test_a_missing_flash_is_made_with_the_firmware_on_it(tmp_path: Path, source: Path) -> None:
    with BoardProcess(tmp_path / "board.img", "--firmware", source) as board:
        assert board.wait_for("files") == "main.py part.py"
        assert board.wait_for("blocks") == "128"
    assert (tmp_path / "board.img").stat().st_size == 512 * KIB


def test_a_flash_has_the_size_asked_for_and_keeps_it(tmp_path: Path, source: Path) -> None:
    for flags in (["--size", "256K"], [], ["--size", "256K"]):
        with BoardProcess(tmp_path / "board.img", "--firmware", source, *flags) as board:
            assert board.wait_for("blocks") == "64"


def test_what_the_board_has_written_outlives_a_power_cut(tmp_path: Path) -> None:
    main = """
import os, time
print("found", "kept" in os.listdir("/") and open("/kept").read())
with open("/kept", "w") as file:
    file.write("a reading")
print("written")
while True:
    time.sleep(1)
"""
    made = firmware(tmp_path / "firmware", main)
    for found in ("False", "a reading"):
        with BoardProcess(tmp_path / "board.img", "--firmware", made) as board:
            assert board.wait_for("found") == found
            board.wait_for("written")
            board.stop(signal.SIGKILL)


def test_only_changed_firmware_files_are_written(image: Path, source: Path) -> None:
    before = image.read_bytes()
    assert updated(image, source) == []
    assert image.read_bytes() == before
    firmware(source, "print('new')\n", other="Y = 1\n")
    assert updated(image, source) == ["other.py", "main.py"]
    assert updated(image, source) == []


def test_changed_firmware_runs_and_the_boards_own_files_stay(image: Path, source: Path) -> None:
    (source / "main.py").write_text("open('/config.json', 'w').write('{}')\nprint('done')\n")
    with BoardProcess(image, "--firmware", source) as board:
        board.wait_for("done")
    (source / "main.py").write_text("import os\nprint(sorted(os.listdir('/')))\n")
    with BoardProcess(image, "--firmware", source) as board:
        board.wait_for("['config.json', 'main.py', 'part.py']")


def test_an_existing_flash_of_another_size_is_refused(image: Path, source: Path) -> None:
    with pytest.raises(Refused, match="--size"):
        updated(image, source, 512 * KIB)
    assert updated(image, source, 256 * KIB) == []


def test_a_file_that_is_no_flash_is_refused_and_left_as_it_is(tmp_path: Path, source: Path) -> None:
    foreign = tmp_path / "thesis.txt"
    foreign.write_bytes(b"three years of work\n" * 1000)
    with BoardProcess(foreign, "--firmware", source) as board:
        assert board.ended() == 2
        assert "no board's flash" in board.lines[-1]
    assert foreign.read_bytes() == b"three years of work\n" * 1000


def test_a_truncated_flash_is_refused(image: Path, source: Path) -> None:
    os.truncate(image, 128 * KIB)
    with pytest.raises(Refused, match="no board's flash"):
        updated(image, source)


def test_an_empty_file_becomes_a_flash(tmp_path: Path, source: Path) -> None:
    (tmp_path / "board.img").touch()
    with BoardProcess(tmp_path / "board.img", "--firmware", source) as board:
        board.wait_for("files")


def test_a_flash_too_small_for_the_firmware_is_refused_and_not_made(
    tmp_path: Path, source: Path
) -> None:
    (source / "part.py").write_text("#" * 70 * KIB)
    with pytest.raises(Refused, match="too small"):
        flash.make(tmp_path / "board.img", 64 * KIB, source)
    assert not (tmp_path / "board.img").exists()


def test_a_flash_in_a_folder_that_is_not_there_is_refused(tmp_path: Path, source: Path) -> None:
    with BoardProcess(tmp_path / "no" / "board.img", "--firmware", source) as board:
        assert board.ended() == 2
        assert "can not write" in board.lines[-1]


def test_the_flags_win_over_the_config_on_the_flash(tmp_path: Path) -> None:
    main = "import settings\nprint('over', sorted(settings.over.items()))\n"
    made = firmware(tmp_path / "firmware", main, settings="over = {}\n")
    flags = ("--device", "b-1", "--key", "AB" * 32, "--period-ms", 500)
    with BoardProcess(tmp_path / "board.img", "--firmware", made, *flags) as board:
        assert board.wait_for("over") == str(
            [
                ("device", "b-1"),
                ("gateway", "http://127.0.0.1:9"),
                ("key", "ab" * 32),
                ("period_ms", 500),
            ]
        )


@pytest.mark.parametrize(
    "flags",
    [
        ("--key", "abc"),
        ("--gateway", "ftp://somewhere"),
        ("--device", "a board"),
        ("--period-ms", "0"),
        ("--heap", "much"),
        ("--size", "100000"),
        ("--size", "4K"),
        ("--epoch", "1900"),
        ("--ticks-start", str(1 << 30)),
        ("--firmware", "/nowhere"),
    ],
    ids=" ".join,
)
def test_a_bad_flag_is_named(tmp_path: Path, flags: tuple[str, str]) -> None:
    with BoardProcess(tmp_path / "board.img", *flags) as board:
        assert board.ended() == 2
        assert flags[0] in board.lines[-1]
    assert not (tmp_path / "board.img").exists()
