"""The virtual board's USB port: the stock mpremote works on it as on a board."""

import hashlib
import os
import select
import time
from pathlib import Path

import pytest

from tests.system.board_process import needs_micropython, trace_lines, until
from tests.system.serial_board import SerialBoard

pytestmark = needs_micropython

COUNTS = "import time\nn = 0\nwhile True:\n    n += 1\n    time.sleep_ms(1)\n"


def put_main(board: SerialBoard, folder: Path, text: str) -> None:
    main = folder / "main.py"
    main.write_text(text)
    board.mpremote("fs", "cp", str(main), ":main.py")


def test_mpremote_copies_lists_hashes_and_removes_files(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5
    (tmp_path / "there.bin").write_bytes(content)
    with SerialBoard(tmp_path) as board:
        board.mpremote("fs", "cp", str(tmp_path / "there.bin"), ":a.bin")
        assert "1280 a.bin" in board.mpremote("fs", "ls")
        told = board.mpremote("fs", "sha256sum", "a.bin")
        assert hashlib.sha256(content).hexdigest() in told
        board.mpremote("fs", "cp", ":a.bin", str(tmp_path / "back.bin"))
        board.mpremote("fs", "rm", "a.bin")
        assert "a.bin" not in board.mpremote("fs", "ls")
    assert (tmp_path / "back.bin").read_bytes() == content


def test_ctrl_c_interrupts_main_and_a_soft_reset_in_the_raw_repl_starts_it_no_more(
    tmp_path: Path,
) -> None:
    with SerialBoard(tmp_path) as board:
        put_main(board, tmp_path, COUNTS)
        board.mpremote("reset")
        until(lambda: {"reset": "hard"} in trace_lines(board.trace))
        time.sleep(0.3)  # no event tells that it counts; too early, and the next line says so
        assert int(board.mpremote("resume", "exec", "print(n)")) > 0
        assert board.mpremote("exec", "print('n' in globals())") == "False\n"
        assert trace_lines(board.trace)[-1] == {"reset": "soft"}
        board.mpremote("resume", "soft-reset")
        assert board.mpremote("resume", "exec", "x = 1") == ""
        assert board.mpremote("resume", "eval", "x + 1") == "2\n"


def test_an_error_is_told_as_a_board_tells_it(tmp_path: Path) -> None:
    with SerialBoard(tmp_path) as board, pytest.raises(AssertionError) as failed:
        board.mpremote("exec", "def f():\n    raise ValueError('wrong')\nf()")
    told = str(failed.value)
    assert "Traceback" in told
    assert 'File "<stdin>", line 2, in f' in told
    assert "ValueError: wrong" in told
    assert "console" not in told


def test_a_folder_of_the_computer_is_mounted(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "lent.py").write_text("print('lent')\n" + "# more than one transfer\n" * 40)
    with SerialBoard(tmp_path) as board:
        script = "import lent; f = open('out', 'wb'); f.write(bytes(range(256))); f.close()"
        assert "lent\n" in board.mpremote("mount", str(there), "exec", script)
    assert (there / "out").read_bytes() == bytes(range(256))


def test_the_repl_answers_a_person(tmp_path: Path) -> None:
    with SerialBoard(tmp_path) as board:
        line = os.open(board.port, os.O_RDWR | os.O_NOCTTY)
        try:
            assert b">>> " in said(line, b"\r", b">>> ")
            assert said(line, b"1 + 1\r", b">>> ").endswith(b"1 + 1\r\n2\r\n>>> ")
            assert b"... " in said(line, b"for i in range(2):\r print(i)\r\r", b"1\r\n>>> ")
            said(line, b"while 1: pass\r", b"while 1: pass\r\n")
            time.sleep(0.3)  # nothing tells that it runs
            assert b"KeyboardInterrupt" in said(line, b"\x03", b">>> ")
            assert b"MPY: soft reboot" in said(line, b"\x04", b"for more information.\r\n>>> ")
            assert b"raw REPL; CTRL-B to exit\r\n>" in said(line, b"\x01", b"\r\n>")
            assert said(line, b"print(7)\x04", b"\x04>").endswith(b"OK7\r\n\x04\x04>")
        finally:
            os.close(line)


def said(line: int, typed: bytes, until_: bytes) -> bytes:
    """Type this; return what comes until it ends so."""
    os.write(line, typed)
    give_up_at, came = time.monotonic() + 10, b""
    while not came.endswith(until_):
        assert time.monotonic() < give_up_at, came
        if select.select([line], [], [], 0.1)[0]:
            came += os.read(line, 4096)
    return came


def test_nobody_who_reads_costs_the_board_no_time(tmp_path: Path) -> None:
    chatter = (
        "for i in range(4000):\n    print('x' * 70)\nimport machine\nmachine.trace('put', 1)\n"
    )
    with SerialBoard(tmp_path) as board:
        put_main(board, tmp_path, chatter)
        board.mpremote("reset")
        until(lambda: {"put": 1} in trace_lines(board.trace))


def test_an_armed_watchdog_leaves_a_person_who_interrupts_alone(tmp_path: Path) -> None:
    main = (
        "import board, time\nfeed = board.watchdog(600)\n"
        "try:\n    while True:\n        feed()\n        time.sleep_ms(20)\n"
        "except KeyboardInterrupt:\n    board.rest()\n"
    )
    device = Path(__file__).resolve().parents[2] / "device"
    with SerialBoard(tmp_path) as board:
        for name in ("board.py", "clock.py"):
            board.mpremote("fs", "cp", str(device / name), f":{name}")
        put_main(board, tmp_path, main)
        board.mpremote("reset")
        until(lambda: {"reset": "hard"} in trace_lines(board.trace))
        board.mpremote("resume", "exec", "import time; time.sleep_ms(1500)")
        assert board.mpremote("resume", "exec", "print(2)") == "2\n"
        assert {"reset": "watchdog"} not in trace_lines(board.trace)
