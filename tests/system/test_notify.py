"""What systemd hears of a gateway, over a real socket of its kind."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import notify
from gateway.store.database import Database
from tests.conftest import ROOT

UNIT = ROOT / "docs" / "operations" / "fieldpost.service"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """Give the end of a socket at which systemd would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        yield listening


def test_a_gateway_says_ready_alive_and_stopping(serve, manager, tmp_path):
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    gateway = serve("--open", environ=environ)
    assert [manager.recv(64) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
    gateway.process.send_signal(signal.SIGTERM)
    while (told := manager.recv(64)) == b"WATCHDOG=1":
        pass
    assert told == b"STOPPING=1"
    assert gateway.end()[0] == 0


def test_a_gateway_for_which_no_watchdog_waits_says_ready_only(serve, manager, tmp_path):
    gateway = serve("--open", environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    gateway.end(signal.SIGTERM)
    assert [manager.recv(64) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]


def test_a_socket_that_nobody_listens_at_stops_nothing(serve, tmp_path):
    gateway = serve("--open", environ={"NOTIFY_SOCKET": str(tmp_path / "none")})
    assert gateway.end(signal.SIGTERM)[0] == 0


async def test_a_writer_that_does_not_answer_leaves_the_watchdog_hungry(manager, tmp_path):
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    manager.setblocking(False)
    heard = asyncio.get_running_loop().sock_recv
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000"}
    async with notify.supervised(database, environ):
        assert [await heard(manager, 64) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
        begun, may_end = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def hang(connection: object) -> None:
            loop.call_soon_threadsafe(begun.set)
            may_end.wait(20)

        hanging = asyncio.create_task(database.write(hang))
        await begun.wait()
        # What was on its way when the writer hung may still come; then nothing more.
        told = 0
        while told <= 2:
            try:
                await asyncio.wait_for(heard(manager, 64), 0.3)
                told += 1
            except TimeoutError:
                break
        assert told <= 2
        may_end.set()
        await hanging
        assert await asyncio.wait_for(heard(manager, 64), 10) == b"WATCHDOG=1"
    await database.close()


async def test_the_watchdog_of_another_process_is_not_fed(manager, tmp_path):
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "3000"}
    async with notify.supervised(database, environ | {"WATCHDOG_PID": str(os.getpid() + 1)}):
        for _ in range(10):
            await database.write(lambda connection: None)
    assert [manager.recv(64) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]
    await database.close()


def test_the_unit_waits_for_what_the_gateway_says():
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert settings["Type"] == "notify"
    assert int(settings["WatchdogSec"]) >= 30
    assert int(settings["TimeoutStopSec"]) > 10


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    here = UNIT.read_text().replace("/opt/fieldpost/.venv/bin/python", "/bin/true")
    (tmp_path / UNIT.name).write_text(here)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / UNIT.name)]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")
