"""`python -m tools.screenshots`: pictures of the pages, for a person to look at, in docs/images/.

Starts a gateway of its own in a temporary folder, gives it a day of four boards and some jobs, and
takes each page in a real browser. Needs Chromium and the development packages.
"""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

_IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BATCH = 64
_QUARTER_MS = 900_000
_QUARTERS = 26 * 4

# name of the file, address, width, height, theme, language
_PICTURES = (
    ("status", "/status", 1280, 900, "light", "en-GB"),
    ("status-dark", "/status", 1600, 900, "dark", "pt-PT"),
    ("status-phone", "/status", 360, 780, "light", "en-GB"),
    ("device", "/status/devices/greenhouse", 1280, 760, "light", "en-GB"),
    ("job", "/status/jobs/2", 1280, 620, "dark", "en-GB"),
    ("ask", "/status/ask", 1280, 680, "light", "pt-PT"),
)
# device: sensors as (name, unit, middle, swing)
_BOARDS: dict[str, list[tuple[str, str, float, float]]] = {
    "cold-store": [("ds18x20.temperature", "Cel", 4, 1)],
    "greenhouse": [("dht22.temperature", "Cel", 21, 6), ("dht22.humidity", "%RH", 55, 15)],
    "river-gauge": [("level", "m", 1.8, 0.3), ("battery", "V", 3.9, 0.2)],
    "shed": [("internal.temperature", "Cel", 28, 4)],
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=__doc__)
    parser.add_argument("--folder", type=Path, default=_IMAGES, help="where the pictures go")
    folder: Path = parser.parse_args().folder
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    if chromium is None:
        print("screenshots: install chromium first", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with _gateway() as address:
        _fill(address)
        time.sleep(3)  # the aggregates and the alarms follow within 2 s
        _take(chromium, address, folder)
    return 0


@contextmanager
def _gateway() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["serve", "--open", "--port", "0", "--db", f"{folder}/fieldpost.db"]
        command = [sys.executable, "-m", "gateway", *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            try:
                yield first.partition("listening on ")[2].partition("/ ")[0]
            finally:
                process.terminate()


def _fill(address: str) -> None:
    now_ms = int(time.time() * 1000)
    chance = random.Random(1)
    for place, board in enumerate(_BOARDS):
        readings = list(_day(board, place, now_ms, chance))
        for first in range(0, len(readings), _BATCH):
            _post(
                address,
                "/v1/readings",
                {
                    "device": board, "boot": f"7f3a17c2{place + 1}", "seq": first + 1, "up_ms": 1,
                    "sent_ms": now_ms, "health": _health(place),
                    "readings": readings[first : first + _BATCH],
                },
            )  # fmt: skip
    refused = {"id": "shed-7f3a17c24-105", "sensor": "internal.temperature", "value": "21"}
    _post(address, "/v1/readings", {"device": "shed", "readings": [refused]})
    yesterday = time.strftime("%Y-%m-%d", time.gmtime(now_ms / 1000 - 86_400))
    mail = {"to": ["ana@example.org"], "subject": "Report", "text": "It is there.", "key": "k"}
    days = {"from": yesterday, "to": yesterday}
    _post(address, "/v1/jobs", {"kind": "daily_report", "args": {"date": yesterday}})
    _post(address, "/v1/jobs", {"kind": "send_email", "args": mail})
    later = {"kind": "recalculate_chart", "args": days, "run_at_ms": now_ms + 3_600_000}
    _post(address, "/v1/jobs", later)


def _day(board: str, place: int, now_ms: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    number = 0
    for quarter in range(_QUARTERS):
        at_ms = now_ms - (_QUARTERS - quarter) * _QUARTER_MS + _QUARTER_MS - 5000
        for sensor, unit, middle, swing in _BOARDS[board]:
            number += 1
            if (board == "shed" and 12 <= number <= 14) or (
                board == "river-gauge" and 40 < quarter < 52
            ):
                continue  # lost on the way, and an outage
            wave = math.sin((quarter + place * 9) / _QUARTERS * 2 * math.pi)
            value = round(middle + swing * wave + chance.random() * swing / 5, 2)
            yield {
                "id": f"{board}-7f3a17c2{place + 1}-{number}", "sensor": sensor, "value": value,
                "unit": unit, "at_ms": at_ms,
            }  # fmt: skip


def _health(place: int) -> dict[str, Any]:
    return {
        "firmware": "1.0.0", "period_ms": 60_000, "heap_free": 81_234 - 900 * place,
        "rssi": -58 - 4 * place, "outbox": (0, 0, 3, 42)[place], "dropped": (0, 0, 7, 0)[place],
        "clock": "synced",
    }  # fmt: skip


def _post(address: str, target: str, value: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address + target, json.dumps(value).encode(), headers)
    with urllib.request.urlopen(request, timeout=10):
        pass


def _take(chromium: str, address: str, folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, target, width, height, theme, language in _PICTURES:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
                locale=language,
                timezone_id="Europe/Lisbon",
            )
            page = context.new_page()
            page.goto(address + target)
            if page.locator("[data-part]").count():
                page.locator("#live:not(.lost):not(:empty)").wait_for()
            page.screenshot(path=folder / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
