"""Each known trouble is told by its name, from a cause that is real or played on a real port."""

import os
import shutil
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import wifi as firmware_wifi

from tests.system.board_process import needs_micropython
from tests.system.rom_loader import RomLoader
from tests.system.serial_board import ROOT, SerialBoard
from tools.flash import (
    flashing,
    follow,
    gateway,
    loader,
    lock,
    micropython,
    ports,
    session,
    survey,
)
from tools.flash.line import Line
from tools.flash.options import parse
from tools.flash.session import Session
from tools.flash.steps import Steps
from tools.flash.trouble import TROUBLES, Trouble

NOBODY = 65534
IMAGE = bytes([0xE9, 2, 2, 0x20, *[0] * 8])


@contextmanager
def names(trouble: str) -> Iterator[None]:
    with pytest.raises(Trouble) as raised:
        yield
    assert raised.value.name == trouble
    assert "{" not in str(raised.value)


@pytest.fixture
def port() -> Iterator[tuple[int, str]]:
    """Return a pseudo-terminal: the board's side of it, and the name of ours."""
    master, slave = os.openpty()
    tty.setraw(slave)
    yield master, os.ttyname(slave)
    os.close(master)
    os.close(slave)


# The computer's end.


def test_no_port() -> None:
    with names("no_port"):
        ports.find(None, there=list)
    with names("no_port"):
        ports.require("/dev/ttyUSB77")


def test_several_ports_and_nobody_to_ask() -> None:
    with names("which_port"):
        ports.find(None, there=lambda: ["/dev/ttyUSB0", "/dev/ttyUSB1"])


def test_no_permission(tmp_path: Path) -> None:
    there = tmp_path / "ttyUSB0"
    there.touch(mode=0o000)
    os.chmod(tmp_path, 0o755)
    script = (
        "import grp, os; from tools.flash import ports\n"
        "if os.getuid() == 0: os.setgroups([]); os.setuid({nobody})\n"
        "try: ports.require({there!r})\n"
        "except Exception as trouble: print(trouble.name, trouble.do)"
    )
    # A folder of root's own is closed to others: the file must be where all may go.
    with open_to_all(there) as reachable:
        text = script.format(nobody=NOBODY, there=str(reachable))
        said = subprocess.run(
            [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True
        )
    assert said.stdout.startswith("no_permission run `sudo usermod -a -G"), said


@contextmanager
def open_to_all(file: Path) -> Iterator[Path]:
    there = Path("/tmp") / f"fieldpost-{os.getpid()}-ttyUSB0"
    shutil.copy(file, there)
    there.chmod(0o000)
    try:
        yield there
    finally:
        there.unlink()


def test_a_busy_port_names_the_process(port: tuple[int, str]) -> None:
    with (
        open(port[1], "rb") as line,
        subprocess.Popen(["sleep", "60"], stdin=line) as holder,
    ):
        with pytest.raises(Trouble) as raised:
            ports.require_free(port[1], patience_s=0)
        holder.kill()
    assert raised.value.name == "busy_port"
    assert f"sleep (process {holder.pid})" in raised.value.what


def test_brltty_is_known_by_name(port: tuple[int, str], tmp_path: Path) -> None:
    thief = tmp_path / "brltty"
    shutil.copy(str(shutil.which("sleep")), thief)
    with open(port[1], "rb") as line, subprocess.Popen([str(thief), "60"], stdin=line) as holder:
        until_named(holder.pid, "brltty")
        with names("brltty"):
            ports.require_free(port[1], patience_s=0)
        assert "brltty" in ports.thieves()
        holder.kill()


def until_named(pid: int, name: str) -> None:
    give_up_at = time.monotonic() + 5
    while Path(f"/proc/{pid}/comm").read_text().strip() != name:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_a_port_that_another_tool_works_on(tmp_path: Path) -> None:
    with (
        lock.held(tmp_path, "/dev/ttyUSB0"),
        names("locked_port"),
        lock.held(tmp_path, "/dev/ttyUSB0"),
    ):
        pass  # pragma: no cover


def test_a_com_port_that_windows_has_not() -> None:
    with names("windows_com"):
        ports.require("COM77", platform="win32")


# The board's end.


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("no_answer", b""),
        ("boot_mode", b"rst:0x1 (POWERON_RESET),boot:0x3 (DOWNLOAD_BOOT)\r\nwaiting for download"),
        ("watchdog", b"rst:0x8 (TG1WDT_SYS_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\r\n"),
        ("raw_repl_stuck", b"raw REPL; CTRL-B to exit\r\n>OK"),
        ("no_micropython", b"Hello from the blink sketch\r\n"),
    ],
)
def test_a_board_whose_repl_does_not_answer(
    port: tuple[int, str], trouble: str, said: bytes
) -> None:
    with Line(port[1], patience_s=0.3) as line:
        os.write(port[0], said)
        with names(trouble):
            session.reach(line)


def a_board(**facts: Any) -> Session:
    """Return a session with a board of which these facts were found."""
    found = {
        "version": (1, 26, 1), "machine": "ESP32", "mpy": 0x0A06, "system": "<VfsLfs2>",
        "virtual": False, "id": "a4cf12b3d4e5", "free": 1 << 20, "total": 1 << 21, "files": (),
        "config": None,
    }  # fmt: skip
    board = Session.__new__(Session)
    board.options, board.steps = parse([]), Steps()
    board.survey = survey.Survey(**(found | facts))
    return board


def test_a_micropython_that_is_too_old() -> None:
    with names("old_micropython"):
        a_board(version=(1, 20, 0)).require_fit()
    a_board(version=(1, 22, 0)).require_fit()


def test_a_fat_file_system() -> None:
    with names("fat"):
        a_board(system="<VfsFat>").require_fit()


@needs_micropython
def test_a_flash_that_is_full_and_the_board_goes_on_with_what_it_had(
    tmp_path: Path, serve: Callable[..., Any]
) -> None:
    here = ("--gateway", serve().address, "--data", tmp_path)
    with SerialBoard(tmp_path, "--size", "128K") as board:
        told = board.flash(*here).stdout
        assert "the board's flash is full" in told
        assert "ERASE=1" in told
        assert board.mpremote("fs", "ls").strip() == "ls :"


# MicroPython itself, by the real esptool.


def test_micropython_is_written_by_esptool_to_a_board_that_has_none(tmp_path: Path) -> None:
    image = tmp_path / "micropython.bin"
    image.write_bytes(IMAGE + b"\0\0" + bytes(range(256)) * 60)
    with RomLoader() as rom:
        chip = loader.Esptool(rom.port, wires=False)
        micropython.write(chip, image, tmp_path, Steps(), micropython.downloaded, erase=True)
    content = image.read_bytes()
    assert rom.flash[0x1000 : 0x1000 + len(content)] == content
    assert set(rom.flash[:0x1000]) == {0xFF}


def test_a_board_without_micropython_is_offered_one_and_nothing_is_written_unasked(
    port: tuple[int, str], tmp_path: Path
) -> None:
    image = tmp_path / "micropython.bin"
    image.write_bytes(IMAGE + b"\x09\0")
    with Line(port[1], patience_s=0.2) as line:
        os.write(port[0], b"Hello from the blink sketch\r\n")
        with names("no_micropython"):
            flashing.bring(parse([]), line, Steps())
        os.write(port[0], b"Hello from the blink sketch\r\n")
        with names("not_written"):  # it was agreed to by naming a file, and no loader is there
            flashing.bring(parse(["--firmware", str(image)]), line, Steps(), attempts=1)


def test_an_image_for_another_chip_is_not_written(tmp_path: Path) -> None:
    for head in (IMAGE + b"\x09\0", b"PK\x03\x04 a zip file", b""):
        image = tmp_path / "image.bin"
        image.write_bytes(head)
        with names("wrong_chip"):
            loader.require_fit(image, "ESP32")
    image.write_bytes(IMAGE + b"\x09\0")
    loader.require_fit(image, "ESP32-S3")


def test_a_loader_that_does_not_answer(port: tuple[int, str], tmp_path: Path) -> None:
    with names("not_written"):
        loader.Esptool(port[1], wires=False, attempts=1).chip()


# The gateway, and the air.


def test_a_gateway_that_is_not_there() -> None:
    with names("gateway_down"):
        gateway.Gateway("http://127.0.0.1:9", "token").require_alive()


def test_a_gateway_on_loopback_only(serve: Callable[..., Any]) -> None:
    found = gateway.lan.addresses()
    if not found:
        pytest.skip("this machine has no address in a network")
    beyond = serve().address.replace("127.0.0.1", found[0])
    with names("gateway_on_loopback"):
        gateway.Gateway(beyond, "token").require_alive()


def test_a_real_board_is_never_sent_to_loopback() -> None:
    for url in ("http://127.0.0.1:8080", "http://localhost:8080"):
        with names("loopback"):
            gateway.address_for(url, virtual=False)
        assert gateway.address_for(url, virtual=True) == url


def test_a_wrong_token(serve: Callable[..., Any]) -> None:
    with names("token"):
        gateway.Gateway(serve().address, "0" * 64).key("shed")
    with names("no_token"):
        gateway.Gateway(serve().address, None).key("shed")


@pytest.mark.parametrize(
    ("trouble", "log"),
    [
        ("wrong_password", ["wifi: joining shed", f"wifi: {firmware_wifi._WRONG_PASSWORD}"]),
        ("no_network", ["wifi: joining shed", f"wifi: {firmware_wifi._NO_NETWORK}"]),
        (
            "no_gateway",
            ["wifi: up, 192.168.1.7", "not sent: no answer within 10 s", "not sent: [Errno 113]"],
        ),
        ("key_refused", ["wifi: up, 192.168.1.7", "not sent: key refused"]),
    ],
)
def test_a_board_that_does_not_deliver_says_why(trouble: str, log: list[str]) -> None:
    judge = follow.Judge("shed", "http://192.168.1.5:8080")
    for line in log[:-1]:
        judge.hear(line)
    with names(trouble):
        judge.hear(log[-1])


def test_a_gateway_that_answers_with_an_error_is_reached() -> None:
    judge = follow.Judge("shed", "http://192.168.1.5:8080")
    for line in ("wifi: up, 192.168.1.7", "not sent: answer 503", "not sent: answer 503"):
        judge.hear(line)


@needs_micropython
def test_a_key_that_the_gateway_refuses(tmp_path: Path, serve: Callable[..., Any]) -> None:
    here = ("--gateway", serve().address, "--data", tmp_path)
    with SerialBoard(tmp_path, "--key", "0" * 64) as board:
        told = board.flash(*here)
    assert told.returncode == 1
    assert "the gateway refuses the board's key" in told.stdout
    assert "0" * 64 not in told.stdout


def test_every_trouble_says_one_thing_to_do() -> None:
    assert not [name for name, known in TROUBLES.items() if not known.what or not known.do]


def test_the_wifi_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    from tools.flash import wifi

    wifi.keep(tmp_path, {"ssid": "shed", "password": "secret"})
    assert (tmp_path / "wifi.json").stat().st_mode & 0o777 == 0o600
    assert wifi.known(tmp_path) == {"ssid": "shed", "password": "secret"}
    with names("no_wifi"):
        wifi.asked(tmp_path)


def test_frames_on_the_line_are_no_lines_of_the_log() -> None:
    log = follow.Log()
    assert log.feed(b"wifi: up\r\nhalf") == ["wifi: up"]
    [line] = log.feed(b" a line\x1eFP1 12 abcd1234 {}\n")
    assert line == "half a line[readings, for a gateway on this cable]"


def test_whoever_waits_for_the_lock_of_a_looker_gets_it(tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "ports").mkdir()
    with (tmp_path / "ports" / "ttyUSB0.lock").open("w") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        threading.Timer(0.1, lambda: fcntl.flock(looker, fcntl.LOCK_UN)).start()
        with lock.held(tmp_path, "/dev/ttyUSB0"):
            pass


def test_a_person_at_a_terminal_is_asked(tmp_path: Path) -> None:
    script = (
        "import pathlib; from tools.flash import ask, ports, wifi\n"
        "print('port', ports.find(None, there=lambda: ['/dev/a', '/dev/b']))\n"
        "print('agreed', ask.agree('Erase?', yes=False))\n"
        f"print('kept', wifi.asked(pathlib.Path({str(tmp_path)!r})))"
    )
    master, slave = os.openpty()
    command = [sys.executable, "-c", script]
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    try:
        with subprocess.Popen(command, cwd=ROOT, start_new_session=True, **streams) as person:
            told = b""
            for question, answer in (
                (b"[1-2] ", b"2\n"), (b"[y/N] ", b"y\n"), (b"GHz): ", b"shed\n"),
                (b"of shed: ", b"secret\n"), (b"kept", b""),
            ):  # fmt: skip
                while question not in told:
                    told += os.read(master, 1000)
                os.write(master, answer)
            assert person.wait(10) == 0
    finally:
        os.close(master)
        os.close(slave)
    assert b"port /dev/b" in told
    assert b"agreed True" in told
    assert b"secret" not in told.partition(b"kept")[0]
