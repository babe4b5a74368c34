"""A virtual board begins, ends and begins again as a real one does, and leaves nothing behind."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.system.board_process import BoardProcess, firmware, needs_micropython, runs, until
from tools.virtual_board import lock
from tools.virtual_board.refused import Refused
from tools.virtual_board.supervisor import CALM_S, LONGEST_PAUSE_S, pause_s

pytestmark = needs_micropython

IDLE = "import time\nprint('idle')\nwhile True:\n    time.sleep(1)\n"


def start(tmp_path: Path, main: str, *flags: object) -> BoardProcess:
    made = firmware(tmp_path / "firmware", main)
    return BoardProcess(tmp_path / "board.img", "--firmware", made, *flags)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_exit_0_and_no_interpreter_left(tmp_path: Path, number: int) -> None:
    with start(tmp_path, IDLE) as board:
        board.wait_for("idle")
        interpreter = board.interpreter()
        assert board.stop(number) == 0
        assert not runs(interpreter)


def test_ctrl_c_in_a_terminal_reaches_the_supervisor_alone(tmp_path: Path) -> None:
    with start(tmp_path, IDLE) as board:
        board.wait_for("idle")
        interpreter = board.interpreter()
        assert os.getpgid(interpreter) == interpreter != os.getpgid(board.process.pid)


def test_the_interpreter_dies_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with start(tmp_path, IDLE) as board:
        board.wait_for("idle")
        interpreter = board.interpreter()
        assert board.stop(signal.SIGKILL) == -signal.SIGKILL
        until(lambda: not runs(interpreter))


def test_the_flash_stays_locked_while_an_interpreter_lives(tmp_path: Path) -> None:
    with start(tmp_path, IDLE) as board:
        board.wait_for("idle")
        os.kill(board.interpreter(), signal.SIGSTOP)
        with pytest.raises(Refused, match=f"in use by process {board.process.pid}"):
            lock.take(tmp_path / "board.img", wait_s=0)
        board.stop(signal.SIGKILL)
        os.close(until(lambda: lock.take(tmp_path / "board.img")))


def test_a_second_start_is_refused_and_told_who_has_the_flash(tmp_path: Path) -> None:
    with start(tmp_path, IDLE) as first:
        first.wait_for("idle")
        with start(tmp_path, IDLE) as second:
            assert second.ended() == 2
            assert f"in use by process {first.process.pid}" in second.lines[-1]
        assert first.stop() == 0


def test_a_lock_on_a_file_that_was_replaced_meanwhile_is_none(tmp_path: Path) -> None:
    path = tmp_path / "board.img"
    fd = lock.take(path, wait_s=0)
    assert lock.still_there(path, fd)
    (tmp_path / "whole").write_bytes(b"flash")
    (tmp_path / "whole").rename(path)
    assert not lock.still_there(path, fd)
    os.close(fd)


def test_a_second_start_goes_on_when_the_first_board_ends_in_time(tmp_path: Path) -> None:
    with start(tmp_path, IDLE) as first:
        first.wait_for("idle")
        with start(tmp_path, IDLE) as second:
            assert first.stop() == 0
            second.wait_for("idle")


def test_each_reset_is_told_by_its_cause_and_rtc_memory_outlives_it(tmp_path: Path) -> None:
    main = """
import machine
lives = machine.RTC().memory()
print("cause", machine.reset_cause(), lives)
machine.RTC().memory(lives + b"x")
(machine.reset, machine.soft_reset, int)[len(lives)]()
raise ValueError("a crash")
"""
    with start(tmp_path, main) as board:
        assert board.wait_for("cause") == "1 b''"
        assert board.wait_for("reset") == "hard"
        assert board.wait_for("cause") == "2 b'x'"
        assert board.wait_for("reset") == "soft"
        assert board.wait_for("cause") == "5 b'xx'"
        assert board.wait_for("ValueError:") == "a crash"
        assert board.wait_for("reset") == "soft"


def test_rtc_memory_is_gone_after_the_power_was_cut(tmp_path: Path) -> None:
    main = "import machine\nprint('kept', machine.RTC().memory())\nmachine.RTC().memory(b'x')\n"
    with start(tmp_path, main + IDLE) as board:
        board.wait_for("idle")
        board.stop(signal.SIGKILL)
    with start(tmp_path, main + IDLE) as board:
        assert board.wait_for("kept") == "b''"


def test_nothing_runs_after_a_reset_not_even_finally(tmp_path: Path) -> None:
    main = """
import machine
if machine.reset_cause() == machine.PWRON_RESET:
    try:
        machine.reset()
    finally:
        print("went on")
print("again")
"""
    with start(tmp_path, main) as board:
        board.wait_for("again")
        assert "went on" not in board.lines


def test_a_watchdog_that_is_not_fed_ends_even_a_board_that_spins(tmp_path: Path) -> None:
    main = """
import machine, time
print("cause", machine.reset_cause())
if machine.reset_cause() == machine.PWRON_RESET:
    machine.WDT(timeout=300)
    while True:
        machine.RTC().memory(b"busy, but nobody is fed")
"""
    with start(tmp_path, main) as board:
        board.wait_for("cause")
        assert board.wait_for("reset") == "watchdog"
        assert board.wait_for("cause") == "3"


def test_a_soft_reset_does_not_disarm_the_watchdog(tmp_path: Path) -> None:
    main = """
import machine
if machine.reset_cause() == machine.PWRON_RESET:
    machine.WDT(timeout=1000)
    machine.soft_reset()
while machine.reset_cause() == machine.SOFT_RESET:
    pass
print("again")
while True:
    pass
"""
    with start(tmp_path, main) as board:
        board.wait_for("again")
        resets = [line for line in board.lines if line.startswith("reset")]
        assert resets == ["reset power", "reset soft", "reset watchdog"]


def test_a_watchdog_that_is_fed_lets_the_board_live(tmp_path: Path) -> None:
    main = """
import machine, time
print("cause", machine.reset_cause())
dog = machine.WDT(timeout=300)
for _ in range(20):
    time.sleep_ms(50)
    dog.feed()
print("alive")
"""
    with start(tmp_path, main) as board:
        board.wait_for("alive")
        assert [line for line in board.lines if line.startswith("cause")] == ["cause 1"]


def test_an_interpreter_that_dies_is_started_again_after_a_hard_reset(tmp_path: Path) -> None:
    with start(tmp_path, IDLE) as board:
        board.wait_for("idle")
        os.kill(board.interpreter(), signal.SIGSEGV)
        assert "ended with -11" in board.wait_for("the interpreter")
        assert board.wait_for("reset") == "hard"
        board.wait_for("idle")


def test_a_log_that_nobody_reads_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    made = firmware(tmp_path / "firmware", "while True:\n    print('x' * 1000)\n")
    command = [sys.executable, "-m", "tools.virtual_board", "--firmware", str(made)]
    command += ["--flash", str(tmp_path / "board.img"), "--gateway", "http://127.0.0.1:9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as board:
        assert board.stdout is not None
        pipe = board.stdout.fileno()
        try:
            until(lambda: waiting_bytes(pipe) > 20_000)  # and much more behind it, soon
            board.terminate()
            assert board.wait(10) == 0
        finally:
            board.kill()


def test_a_log_that_nobody_reads_does_not_hold_up_the_board(tmp_path: Path) -> None:
    """As on a serial line: what nobody reads is lost, and the board goes on."""
    noisy = "import machine\nn = 0\nwhile True:\n    print('x' * 1000)\n    n += 1\n"
    noisy += "    if n % 100 == 0:\n        machine.trace('put', str(n))\n"
    made, trace = firmware(tmp_path / "firmware", noisy), tmp_path / "trace"
    command = [sys.executable, "-m", "tools.virtual_board", "--firmware", str(made)]
    command += ["--flash", str(tmp_path / "board.img"), "--gateway", "http://127.0.0.1:9"]
    with subprocess.Popen([*command, "--trace", str(trace)], stdout=subprocess.PIPE) as board:
        try:
            until(lambda: trace.exists() and '{"put": "1000"}' in trace.read_text())
        finally:
            board.kill()


def waiting_bytes(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_words_for_the_supervisor_that_it_does_not_know_are_log(tmp_path: Path) -> None:
    main = "import sys\nsys.stderr.write('\x1ewhat\\n\x1e5\\nlast words\\n')\n"
    with start(tmp_path, main + IDLE) as board:
        board.wait_for("\x1ewhat")
        board.wait_for("last words")


def test_a_board_that_crashes_again_and_again_does_not_spin() -> None:
    pauses = [pause_s(soon) for soon in range(1, 12)]
    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S
    # The firmware's safe mode, after 5 crashes within 60 s, must stay within reach.
    assert sum(pauses[:5]) + 5 * CALM_S < 60


@pytest.mark.parametrize("heap", ["4K", "20K"])
def test_a_heap_in_which_nothing_starts_is_refused(tmp_path: Path, heap: str) -> None:
    with start(tmp_path, IDLE, "--heap", heap) as board:
        assert board.ended() == 2
        assert "--heap" in board.lines[-1]
