"""`make run`: a gateway and a virtual board, real both, started and stopped together."""

import http.client
import os
import re
import signal
import socket
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

STOP_S = 10
ACKNOWLEDGED = r"acknowledged: (virtual-board-[0-9a-f]{8})(\d+)-1\b"

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not say whose child a process is"
)


@pytest.fixture
def run(program, tmp_path):
    def start(*arguments: str):
        return program("tools.run", "--port", "0", "--data", str(tmp_path / "data"), *arguments)

    return start


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def children(pid: int) -> dict[int, str]:
    """Return the process's children, each with its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if parent_of(int(entry.name)) == pid:
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pids) -> None:
    give_up = time.monotonic() + STOP_S
    while any(map(is_running, pids)):
        assert time.monotonic() < give_up, f"still there: {pids}"
        time.sleep(0.05)


def child_named(running, module: str) -> int:
    [pid] = [p for p, line in children(running.process.pid).items() if f"-m {module}" in line]
    return pid


def test_ctrl_c_stops_both_and_the_next_run_goes_on(run, tmp_path):
    for start in (1, 2):
        running = run()
        boot = running.wait_for(ACKNOWLEDGED)[2]
        assert boot == str(start)
        begun = time.monotonic()
        code, out, err = running.end(signal.SIGINT)
        assert (code, "Traceback" in err) == (0, False)
        assert time.monotonic() - begun < STOP_S / 2  # asked to stop, not killed at the limit
        assert re.search(r"watch them at http://127\.0\.0\.1:\d+/status", out)
        assert re.search(r"log in once, .*: http://127\.0\.0\.1:\d+/login\?t=[0-9a-f]{64}\n", out)
    with closing(sqlite3.connect(tmp_path / "data" / "fieldpost.db")) as connection:
        boots = connection.execute("SELECT DISTINCT boot FROM readings").fetchall()
    assert len(boots) == 2


def test_whoever_has_no_key_is_kept_out(run):
    running = run()
    port = int(running.wait_for(r"watch them at http://127\.0\.0\.1:(\d+)/status")[1])
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        client.request("GET", "/v1/readings")
        assert client.getresponse().status == 401
    finally:
        client.close()
    assert running.end(signal.SIGINT)[0] == 0


@linux_only
@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("gateway", "the gateway ended by itself"),
        ("tools.virtual_board", "the virtual board ended"),
    ],
)
def test_when_one_dies_it_is_said_and_the_other_is_stopped(run, module, said):
    running = run()
    running.wait_for(ACKNOWLEDGED)
    both = children(running.process.pid)
    os.kill(child_named(running, module), signal.SIGKILL)
    code, out, _err = running.end()
    assert (code, said in out) == (1, True)
    wait_until_gone(both)


@linux_only
def test_nothing_outlives_it_when_it_is_killed(run):
    running = run()
    running.wait_for(ACKNOWLEDGED)
    below = children(running.process.pid)
    assert len(below) == 2
    below |= {pid: line for child in below for pid, line in children(child).items()}
    running.end(signal.SIGKILL)
    wait_until_gone(below)


def test_a_port_in_use_is_said_before_anything_is_made(program, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        data = tmp_path / "data"
        code, out, err = program("tools.run", "--port", port, "--data", str(data)).end()
    assert (code, out) == (2, "")
    assert f"port {port} on 127.0.0.1 is in use" in err
    assert not data.exists()


def test_listening_to_the_network_says_how_real_boards_get_in(run):
    running = run("--host", "0.0.0.0")
    running.wait_for(ACKNOWLEDGED)
    code, out, _err = running.end(signal.SIGTERM)
    assert code == 0
    assert "watch them at http://127.0.0.1:" in out
    assert "devices add NAME --db" in out


def test_a_start_that_fails_says_why_and_ends(run, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "master.key").write_text("not a key")
    code, _out, err = run().end()
    assert (code, "master.key" in err, "Traceback" in err) == (2, True, False)
