"""`make flash` on a virtual board, from an empty flash to the first reading that is stored."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.system.board_process import needs_micropython
from tests.system.serial_board import ROOT, FlashedBoard, SerialBoard
from tools.flash.line import Line

pytestmark = needs_micropython

PATIENCE_OF_A_BUSY_MACHINE_S = 1.0
CUTS = ("copy",)  # `tools.flash_campaign` has the others


@pytest.fixture
def gateway(serve: Callable[..., Any]) -> tuple[str, str]:
    """Return the flags that lead to a gateway with its data in tmp_path."""
    return ("--gateway", serve().address)


def test_a_dry_run_changes_nothing_then_it_is_flashed_and_again_nothing_is_copied(
    tmp_path: Path, gateway: tuple[str, str]
) -> None:
    with SerialBoard(tmp_path) as board:
        dry = board.flash(*gateway, "--data", tmp_path, "--dry-run").stdout
        assert "would copy" in dry
        assert "nothing was changed" in dry
        assert board.mpremote("fs", "ls").strip() == "ls :"
        first = board.flash(*gateway, "--data", tmp_path)
        assert first.returncode == 0, first.stdout
        for step in ("interrupt", "register", "compile", "compare", "copy", "rename", "reset"):
            assert f"flash: ok  {step}" in first.stdout
        assert "first reading of esp32-" in first.stdout
        again = board.flash(*gateway, "--data", tmp_path)
        assert "nothing had to be copied" in again.stdout
        assert "first reading of esp32-" in again.stdout
        settings = json.loads(board.mpremote("fs", "cat", "config.json"))
        assert settings["gateway"] == gateway[1]
        assert settings["key"] not in first.stdout + again.stdout
        names = board.mpremote("fs", "ls")
        assert "main.py" in names
        assert "uplink.mpy" in names
        assert ".new" not in names


@pytest.mark.parametrize("step", CUTS)
def test_killed_after_a_step_the_next_run_succeeds(
    tmp_path: Path, gateway: tuple[str, str], step: str
) -> None:
    with SerialBoard(tmp_path) as board:
        where = ("--port", board.port, "--data", str(tmp_path), *gateway)
        command = [sys.executable, "-m", "tools.flash", *where]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as cut:
            assert cut.stdout is not None
            assert any(line.startswith(f"flash: ok  {step}") for line in cut.stdout)
            cut.kill()
        after = board.flash(*gateway, "--data", tmp_path)
        assert after.returncode == 0, after.stdout
        assert "first reading of esp32-" in after.stdout


def test_a_reset_in_the_middle_is_tried_again_once(
    tmp_path: Path, gateway: tuple[str, str]
) -> None:
    with SerialBoard(tmp_path) as board:
        where = ("--port", board.port, "--data", str(tmp_path), *gateway)
        command = [sys.executable, "-m", "tools.flash", *where]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            assert any(line.startswith("flash: ok  compare") for line in running.stdout)
            os.kill(board.interpreter(), signal.SIGKILL)
            rest = running.stdout.read()
        assert "once more from the start" in rest
        assert "first reading of esp32-" in rest
        assert running.returncode == 0


def test_what_waits_on_the_board_is_kept_unless_it_is_to_be_erased(
    tmp_path: Path, gateway: tuple[str, str]
) -> None:
    link = tmp_path / "link"
    link.write_text("up")
    with SerialBoard(tmp_path, "--link", link) as board:
        assert board.flash(*gateway, "--data", tmp_path).returncode == 0
        boot = board.mpremote("fs", "cat", "boot")
        link.write_text("down")
        fill = "from outbox import Outbox\no=Outbox('/outbox.d',max_bytes=99999,max_count=99)\n"
        fill += "n=len(o)\nfor i in range(5-n): o.put(b'[\"x-%d\"]' % i)\nprint(len(o))"
        assert board.mpremote("exec", fill) == "5\n"
        dry = board.flash(*gateway, "--data", tmp_path, "--dry-run", "--erase")
        found = re.search(r"would erase the board, and (\d+) readings with it", dry.stdout)
        assert found, dry.stdout
        assert int(found[1]) >= 5  # and what it took itself since
        refused = board.flash(*gateway, "--data", tmp_path, "--erase")
        assert refused.returncode == 1
        assert "Erasing loses" in refused.stdout
        assert "YES=1" in refused.stdout
        assert board.mpremote("fs", "cat", "boot").split()[0] == boot.split()[0]
        link.write_text("up")
        erased = board.flash(*gateway, "--data", tmp_path, "--erase", "--yes")
        assert "readings are lost" in erased.stdout
        assert erased.returncode == 0, erased.stdout
        assert board.mpremote("fs", "cat", "boot").split()[0] != boot.split()[0]


def test_settings_of_the_owner_outlive_provision_and_backup_keeps_the_outbox(
    tmp_path: Path, gateway: tuple[str, str]
) -> None:
    here = (*gateway, "--data", tmp_path)
    with SerialBoard(tmp_path) as board:
        assert board.flash(*here).returncode == 0
        (tmp_path / "config.json").write_text('{"period_ms": 5000, "device": "shed"}')
        board.mpremote("fs", "cp", str(tmp_path / "config.json"), ":config.json")
        told = board.flash("provision", *here)
        assert "first reading of shed stored" in told.stdout
        assert json.loads(board.mpremote("fs", "cat", "config.json"))["period_ms"] == 5000
        assert board.flash("backup", *here).returncode == 0
        [kept] = (tmp_path / "boards").glob("shed-*")
        assert (kept / "boot").read_text()
        assert oct(kept.stat().st_mode & 0o77) == "0o0"
        assert "nothing is wrong" in board.flash("doctor", *here).stdout


def test_the_gateway_takes_over_where_there_is_only_a_cable(
    tmp_path: Path, serve: Callable[..., Any]
) -> None:
    with SerialBoard(tmp_path) as board:
        address = serve("--serial", board.port).address
        told = board.flash("--gateway", f"cable:{address}", "--data", tmp_path)
        assert told.returncode == 0, told.stdout
        assert "first reading of esp32-" in told.stdout


def test_ctrl_c_reaches_the_repl_within_a_second_of_any_boot_and_never_makes_a_safe_mode(
    tmp_path: Path,
) -> None:
    with FlashedBoard(tmp_path) as board, Line(board.port) as line:
        line.reach()
        for later_s in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0):
            line.reset()
            time.sleep(later_s)
            began = time.monotonic()
            line.knock()
            assert time.monotonic() - began < 1.0 + PATIENCE_OF_A_BUSY_MACHINE_S
        kept = line.ask("import json, machine\nprint(json.dumps(list(machine.RTC().memory())))")
        assert kept[2] == 0  # boots in a row that ended too soon
