"""The whole firmware on a virtual board: what it does when it is itself at fault."""

import asyncio
import contextlib
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.device.place import KEY, Place, open_place, says, stores
from tests.system.board_process import needs_micropython

DEVICE = Path(__file__).resolve().parents[2] / "device"
PATIENCE_S = 30
WRITE_A_BAD_CONFIG = """
with open("/config.json", "w") as file:
    file.write("{")
"""

pytestmark = needs_micropython


def firmware(folder: Path, **changes: tuple[str, str]) -> Path:
    """Copy the firmware with a piece of a file put in the place of another."""
    shutil.copytree(DEVICE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (old, new) in changes.items():
        file = folder / f"{name}.py"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
    return folder


@contextlib.asynccontextmanager
async def board(
    place: Place, folder: Path, code: Path = DEVICE, *flags: str
) -> AsyncIterator[None]:
    """Let a board with this firmware run; afterwards its power is cut."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.virtual_board"),
        *("--flash", folder / "flash", "--gateway", place.url, "--key", KEY),
        *("--device", "d", "--period-ms", "100", "--firmware", code),
        *flags,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def until(place: Place, what) -> dict[str, object]:
    """Wait for a request of which this is true; give it."""

    async def look() -> dict[str, object]:
        seen = 0
        while True:
            for request in place.requests[seen:]:
                if what(request.batch):
                    return request.batch
            seen = len(place.requests)
            await asyncio.sleep(0.02)

    return await asyncio.wait_for(look(), PATIENCE_S)


def crash(batch: dict) -> str:
    return batch["health"]["crash"] or ""


async def test_a_board_goes_on_after_its_power_was_cut(tmp_path: Path) -> None:
    async with open_place(Place(stores)) as place:
        async with board(place, tmp_path):
            first = await until(place, lambda batch: batch["readings"])
        place.requests.clear()
        async with board(place, tmp_path):
            second = await until(place, lambda batch: batch["boot"] != first["boot"])
            await until(place, lambda batch: batch["boot"] != first["boot"] and batch["readings"])
    assert first["boot"][8:] == "1"
    assert second["boot"] == first["boot"][:8] + "2"
    assert (second["seq"], second["readings"]) == (1, [])


@pytest.mark.parametrize("epoch", ["1970", "2000"])
async def test_time_is_right_in_either_epoch_and_while_the_ticks_wrap(
    epoch: str, tmp_path: Path
) -> None:
    flags = ("--epoch", epoch, "--ticks-start", str((1 << 30) - 1500))
    async with open_place(Place(stores)) as place, board(place, tmp_path, DEVICE, *flags):
        last = await until(place, lambda batch: any(at_ms(one) for one in batch["readings"]))
        await until(place, lambda batch: batch["up_ms"] > last["up_ms"] + 2500)
        now_ms = time.time_ns() // 1_000_000
    times = [at_ms(one) for r in place.requests for one in r.batch["readings"] if at_ms(one)]
    assert times == sorted(times)
    assert 80 < (times[-1] - times[0]) / (len(times) - 1) < 500
    assert abs(times[-1] - now_ms) < 5000
    ups_ms = [request.batch["up_ms"] for request in place.requests]
    assert ups_ms == sorted(ups_ms)


def at_ms(reading: dict) -> int | None:
    return reading.get("at_ms")


async def test_what_a_portal_answered_arrives_when_it_is_gone(tmp_path: Path) -> None:
    async with open_place(Place(says(200), stores)) as place, board(place, tmp_path):
        await until(place, lambda batch: len(batch["readings"]) == 1)
    sent = [int(one["id"].split("-")[2]) for r in place.requests for one in r.batch["readings"]]
    assert sent == list(range(1, len(sent) + 1))
    assert [request.batch["seq"] for request in place.requests[:3]] == [1, 2, 3]


async def test_what_a_full_outbox_dropped_is_reported_lost(tmp_path: Path) -> None:
    code = firmware(tmp_path / "code", settings=('"outbox_count": 8_000', '"outbox_count": 5'))
    async with open_place(Place(says(200), stores)) as place, board(place, tmp_path, code):
        batch = await until(place, lambda batch: "lost" in batch)
    [lost] = batch["lost"]
    assert lost["from"] == 1
    assert lost["to"] == batch["health"]["dropped"] > 0
    assert lost["boot"] == batch["boot"]


async def test_a_crash_is_told_and_five_in_a_row_lead_to_safe_mode(tmp_path: Path) -> None:
    code = firmware(
        tmp_path / "code",
        sampler=("due_ms = self._clock.up_ms()", "raise RuntimeError('boom')"),
        main=("time.sleep(1)", "time.sleep(0)"),
    )
    async with open_place(Place(stores)) as place, board(place, tmp_path, code):
        safe = await until(place, lambda batch: "safe mode" in crash(batch))
    assert "RuntimeError: boom" in crash(safe)
    assert "sampler.py" in crash(safe)
    assert safe["boot"][8:] == "6"
    assert safe["readings"] == []
    assert safe["health"]["reset"] == "hard"


async def test_a_loop_that_hangs_ends_in_a_reset_that_says_which(tmp_path: Path) -> None:
    code = firmware(
        tmp_path / "code",
        sampler=(
            "due_ms = self._clock.up_ms()",
            "self._watch.back_in('sampler', 0); await asyncio.sleep(1000)",
        ),
        watch=("_SLACK_MS = 30_000", "_SLACK_MS = 500  #"),
        settings=('"watchdog_ms": 60_000', '"watchdog_ms": 1_500'),
    )
    text = (code / "watch.py").read_text()
    (code / "watch.py").write_text(text.replace("_GRACE_MS = 20_000", "_GRACE_MS = 10"))
    async with open_place(Place(stores)) as place, board(place, tmp_path, code):
        after = await until(place, lambda batch: batch["health"]["reset"] == "watchdog")
    assert crash(after) == "watchdog: sampler did not come back"


async def test_a_config_that_is_no_json_stops_no_board(tmp_path: Path) -> None:
    code = firmware(
        tmp_path / "code",
        main=("import asyncio\n", WRITE_A_BAD_CONFIG + "import asyncio\n"),
    )
    async with open_place(Place(stores)) as place, board(place, tmp_path, code):
        hello = await until(place, lambda batch: not batch["readings"])
        await until(place, lambda batch: batch["readings"])
    assert crash(hello) == "/config.json: not JSON"


async def test_without_a_durable_boot_name_a_board_only_talks(tmp_path: Path) -> None:
    code = firmware(
        tmp_path / "code",
        boots=("text = (", "raise OSError(28); text = ("),
        uplink=("heartbeat_ms = 300_000", "heartbeat_ms = 50"),
    )
    async with open_place(Place(stores)) as place, board(place, tmp_path, code):
        await until(place, lambda batch: batch["seq"] == 3)
    assert all(request.batch["readings"] == [] for request in place.requests)
    assert "boot" not in place.requests[0].batch
    assert crash(place.requests[0].batch) == "boot file: OSError(28,)"
