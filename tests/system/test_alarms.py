"""Real gateways, with small thresholds: a device that stops is an alarm, a gateway that was off
is none."""

import json
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.system.test_jobs_clock import LIBRARIES, Clock

GIVE_UP_S = 30
LIMIT_S = 1.5  # three intervals
CONFIG = """
[alarms]
look_s = 0.1
shortest_interval_s = 0.5
heartbeat_s = 0.5
gap_after_s = 0.2
"""


@pytest.fixture
def watching(serve, tmp_path: Path):
    """Start a gateway that looks often."""
    config = tmp_path / "fieldpost.toml"
    config.write_text(CONFIG)
    return lambda: serve("--open", "--config", str(config))


def post(gateway, path: str, sent: Any) -> Any:
    request = urllib.request.Request(
        gateway.address + path, json.dumps(sent).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=GIVE_UP_S) as answer:
        return json.load(answer)


def heard(gateway, device: str, seq: int, *numbers: int) -> int:
    """Send what a board sends; return when it was answered, ms."""
    boot = "7f3a17c21"
    readings = [
        {"id": f"{device}-{boot}-{n}", "sensor": "t", "value": n, "up_ms": 1} for n in numbers
    ]
    envelope = {"device": device, "boot": boot, "seq": seq, "up_ms": 1}
    post(gateway, "/v1/readings", envelope | {"health": {"period_ms": 500}, "readings": readings})
    return int(time.time() * 1000)


def get(gateway, path: str) -> Any:
    with urllib.request.urlopen(gateway.address + path, timeout=GIVE_UP_S) as answer:
        return json.load(answer)


def until(gateway, path: str, holds) -> Any:
    """Return the answer for which it holds."""
    give_up_at = time.monotonic() + GIVE_UP_S
    while not holds(found := get(gateway, path)):
        assert time.monotonic() < give_up_at, found
        time.sleep(0.02)
    return found


def test_a_device_that_stops_is_an_alarm_until_it_returns(watching, gateway_command, tmp_path):
    gateway = watching()
    heard_ms = heard(gateway, "shed", 1, 1, 3)
    status = until(gateway, "/v1/status", lambda s: s["devices"]["silent"])
    assert status["headline"] == "1 of 1 device is silent, 1 reading is missing"
    [silent] = [one for one in status["alarms"] if one["kind"] == "device_silent"]
    assert silent["opened_at_ms"] - heard_ms > LIMIT_S * 1000 - 100
    database = ("--db", str(tmp_path / "fieldpost.db"))
    said = ("alarms", "acknowledge", str(silent["id"]), "on my way", *database)
    assert gateway_command(*said).end()[0] == 0
    code, _, told = gateway_command("alarms", "close", str(silent["id"]), *database).end()
    assert (code, "closes by itself" in told) == (2, True)
    heard(gateway, "shed", 2, 2)
    until(gateway, "/v1/status", lambda s: s["ok"])
    [over] = [
        one
        for one in get(gateway, "/v1/alarms?state=closed")["alarms"]
        if one["id"] == silent["id"]
    ]
    assert (over["note"], over["closed_by"]) == ("on my way", None)
    assert over["closed_at_ms"] > over["opened_at_ms"]


def test_a_gateway_that_was_off_gives_every_device_its_time(watching):
    gateway = watching()
    for device in ("a", "b", "c"):
        heard(gateway, device, 1, 1)
    gateway.end(signal.SIGTERM)
    began = time.monotonic()
    while time.monotonic() < began + LIMIT_S:  # longer than any of them may be silent
        time.sleep(0.05)
    started_ms = int(time.time() * 1000)
    gateway = watching()
    status = until(gateway, "/v1/status", lambda s: s["devices"]["silent"] == 3)
    assert all(one["opened_at_ms"] - started_ms > LIMIT_S * 1000 for one in status["alarms"])


@pytest.mark.skipif(not LIBRARIES, reason="NO CLOCK THAT STEPS: libfaketime is not installed")
@pytest.mark.parametrize("step_s", [-7200, 7200])
def test_a_step_of_the_clock_is_told_and_makes_nobody_silent(serve, tmp_path, step_s):
    clock, config = Clock(tmp_path), tmp_path / "fieldpost.toml"
    config.write_text("[alarms]\nlook_s = 0.1\n")
    clock.set(0)
    gateway = serve("--open", "--config", str(config), environ=clock.environ)
    heard(gateway, "shed", 1, 1)
    clock.set(step_s)
    status = until(gateway, "/v1/status", lambda s: s["alarms"])
    assert [one["kind"] for one in status["alarms"]] == ["clock_stepped"]
    assert status["devices"] == {"total": 1, "silent": 0}
