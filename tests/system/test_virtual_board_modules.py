"""The modules that stand in for an ESP32's: time, network, sockets, and the trace."""

from pathlib import Path

import pytest

from tests.system.board_process import (
    BoardProcess,
    firmware,
    needs_micropython,
    trace_lines,
)

pytestmark = needs_micropython


def start(tmp_path: Path, main: str, *flags: object) -> BoardProcess:
    made = firmware(tmp_path / "firmware", main)
    return BoardProcess(tmp_path / "board.img", "--firmware", made, *flags)


@pytest.mark.parametrize("epoch", [1970, 2000])
def test_the_clock_starts_at_the_epoch_and_is_kept_through_resets(
    tmp_path: Path, epoch: int
) -> None:
    main = """
import machine, time
print("now", time.gmtime(0)[0], time.time(), time.gmtime()[:5], time.mktime(time.gmtime()))
machine.RTC().datetime((2026, 12, 24, 0, 18, 30, 0, 0))
(machine.reset, machine.soft_reset, int)[machine.reset_cause() // 2]()
"""
    with start(tmp_path, main, "--epoch", epoch) as board:
        assert board.wait_for("now") == f"{epoch} 0 ({epoch}, 1, 1, 0, 0) 0"
        seconds = 1798137000 - (946684800 if epoch == 2000 else 0)
        for _ in range(2):
            told = board.wait_for("now")
            assert "(2026, 12, 24, 18, 30)" in told
            assert int(told.split()[1]) - seconds < 30
            assert told.split()[1] == told.split()[-1]


def test_the_power_cut_takes_the_time_along(tmp_path: Path) -> None:
    main = """
import machine, time
print("now", time.time())
machine.RTC().datetime((2026, 12, 24, 0, 18, 30, 0, 0))
"""
    for _ in range(2):
        with start(tmp_path, main) as board:
            assert board.wait_for("now") == "0"


def test_ticks_wrap_as_on_an_esp32_and_asyncio_sleeps_across_the_wrap(tmp_path: Path) -> None:
    main = """
import asyncio, time
async def late():
    await asyncio.sleep_ms(60_000)
async def main():
    began = time.ticks_ms()
    asyncio.create_task(late())  # due after the wrap, but not before us
    await asyncio.sleep_ms(400)
    now = time.ticks_ms()
    print("ticks", began > now, 400 <= time.ticks_diff(now, began) < 1000,
          time.ticks_diff(time.ticks_add(began, 400), began), time.ticks_add((1 << 30) - 1, 1))
    for name, wait in (("sleep", asyncio.sleep_ms), ("add", lambda ms: time.ticks_add(0, ms))):
        try:
            wait(1 << 29)
            print("taken", name)
        except OverflowError as err:
            print("too long", name)
asyncio.run(main())
"""
    with start(tmp_path, main, "--ticks-start", (1 << 30) - 200) as board:
        assert board.wait_for("ticks") == "True True 400 0"
        assert board.wait_for("too long") == "sleep"
        assert board.wait_for("too long") == "add"


def test_ticks_go_on_through_a_soft_reset_and_start_again_after_a_hard_one(tmp_path: Path) -> None:
    main = """
import machine, time
print("ticks", time.ticks_ms())
time.sleep_ms(300)
(machine.soft_reset if machine.reset_cause() == 1 else machine.reset)()
"""
    with start(tmp_path, main, "--ticks-start", 5_000_000) as board:
        first, after_soft, after_hard = (int(board.wait_for("ticks")) for _ in range(3))
        assert 5_000_000 <= first < 5_000_300
        assert after_soft >= first + 300
        assert 5_000_000 <= after_hard < 5_000_300


def test_without_wifi_sockets_fail_as_a_boards_do(tmp_path: Path) -> None:
    main = """
import network, socket, time
def tried(what, *given):
    try:
        what(*given)
        return 0
    except OSError as err:
        return err.errno
wlan = network.WLAN(network.STA_IF)
wlan.active(True)
wlan.connect("anything", "goes")
while True:
    address = socket.getaddrinfo("127.0.0.1", 9)[0][-1]
    up = wlan.isconnected()
    print("wifi", up, tried(wlan.status, "rssi"),
          tried(socket.getaddrinfo, "localhost", 9),
          tried(lambda: socket.socket().connect(address)))
    while wlan.isconnected() == up:
        time.sleep_ms(10)
"""
    link = tmp_path / "link"
    with start(tmp_path, main, "--link", link) as board:
        assert board.wait_for("wifi") == "False Wifi Not Connected -202 118"
        link.write_text("up\n")
        assert board.wait_for("wifi") == "True 0 0 111"
        link.write_text("down\n")
        assert board.wait_for("wifi").split()[0] == "False"


def test_a_board_that_has_not_joined_reaches_nobody(tmp_path: Path) -> None:
    main = """
import network, socket
wlan = network.WLAN(network.STA_IF)
def look_up():
    try:
        print("found", bool(socket.getaddrinfo("localhost", 9)))
    except OSError as err:
        print("error", err.errno)
look_up()
try:
    wlan.connect("anything")
except OSError as err:
    print("error", err)
wlan.active(True)
look_up()
wlan.connect("anything")
look_up()
wlan.disconnect()
look_up()
"""
    with start(tmp_path, main) as board:
        assert board.wait_for("error") == "-202"
        assert board.wait_for("error") == "Wifi Not Started"
        assert board.wait_for("error") == "-202"
        assert board.wait_for("found") == "True"
        assert board.wait_for("error") == "-202"


def test_a_connection_breaks_when_wifi_goes_down_under_it(tmp_path: Path) -> None:
    main = """
import network, socket
wlan = network.WLAN(network.STA_IF)
wlan.active(True)
wlan.connect()
listening = socket.socket()
listening._real.bind(socket.getaddrinfo("127.0.0.1", PORT)[0][-1])
listening._real.listen(1)
talking = socket.socket()
talking.connect(socket.getaddrinfo("127.0.0.1", PORT)[0][-1])
other = listening._real.accept()[0]
other.write(b"answer")
print("waiting")
while wlan.isconnected():
    pass
try:
    print("read", talking.read(6))
except OSError as err:
    print("broken", err.errno)
talking.close()
"""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    link = tmp_path / "link"
    link.write_text("up")
    with start(tmp_path, main.replace("PORT", str(port)), "--link", link) as board:
        board.wait_for("waiting")
        link.unlink()
        assert board.wait_for("broken") == "113"


TELLING = """
import machine
machine.trace("put", "a-1")
machine.trace("acked", ["a-1", "a-2"])
machine.trace("dropped", "a-3")
machine.trace("dead", "a-4")
machine.trace("wait", (2500, 1))
led = machine.Pin(2, machine.Pin.OUT)
led.value(1)
led.value(1)
led.off()
machine.trace("log", "said")
while True:
    pass
"""


def test_the_trace_has_one_json_line_for_each_event(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text('{"put": "earlier"}\n')
    with start(tmp_path, TELLING, "--trace", trace) as board:
        board.wait_for("said")
        assert trace_lines(trace) == [
            {"put": "earlier"},
            {"reset": "power"},
            {"put": "a-1"},
            {"acked": ["a-1", "a-2"]},
            {"dropped": "a-3"},
            {"dead": "a-4"},
            {"wait_ms": 2500, "failures": 1},
            {"led": 1},
            {"led": 0},
        ]
        assert board.lines == ["said"]


def test_without_a_trace_the_events_are_told_on_stdout(tmp_path: Path) -> None:
    with start(tmp_path, TELLING) as board:
        board.wait_for("reset power")
        board.wait_for("put a-1")
        board.wait_for("acked ['a-1', 'a-2']")
        board.wait_for("wait (2500, 1)")
        board.wait_for("led 0")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_trace_that_can_not_be_written_stops_the_board(tmp_path: Path) -> None:
    with start(tmp_path, TELLING, "--trace", "/dev/full") as board:
        assert board.ended() == 2
        assert "/dev/full" in board.lines[-1]


def test_a_trace_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with start(tmp_path, TELLING, "--trace", tmp_path / "no" / "trace") as board:
        assert board.ended() == 2
        assert "can not write" in board.lines[-1]


def test_each_flash_has_an_id_of_its_own_that_stays(tmp_path: Path) -> None:
    main = "import machine\nprint('id', machine.unique_id())\n"
    made = firmware(tmp_path / "firmware", main)
    ids = []
    for name in ("one.img", "two.img", "one.img"):
        with BoardProcess(tmp_path / name, "--firmware", made) as board:
            ids.append(board.wait_for("id"))
    assert ids[0] == ids[2] != ids[1]


def test_the_chip_has_a_temperature(tmp_path: Path) -> None:
    main = "import esp32\nprint('t', esp32.mcu_temperature(), esp32.raw_temperature())\n"
    with start(tmp_path, main) as board:
        celsius, fahrenheit = map(int, board.wait_for("t ").split())
        assert 20 < celsius < 50
        assert abs(celsius * 1.8 + 32 - fahrenheit) < 2


def test_our_own_names_are_free_for_the_firmware(tmp_path: Path) -> None:
    main = "import flash, host\nprint('mine', flash.X, host.X)\n"
    made = firmware(tmp_path / "firmware", main, flash="X = 1\n", host="X = 2\n")
    with BoardProcess(tmp_path / "board.img", "--firmware", made) as board:
        assert board.wait_for("mine") == "1 2"
