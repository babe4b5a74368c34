"""A real browser, and gateways in processes of their own."""

import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.conftest import Program

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
MODULE = "tests.browser.page_process"
GIVE_UP_MS = 20_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say loudly that nobody looked at the page; where it must be looked at, fail instead."""
    if CHROMIUM or os.environ.get("CI") == "true":
        return
    here = Path(__file__).parent
    mine = [item for item in items if here in item.path.parents]
    for item in mine:
        item.add_marker(pytest.mark.skip(reason="NO BROWSER: install chromium"))
    if mine:
        print("\nNO BROWSER: the page was not tested; install chromium", file=sys.stderr)


# Closed with each file of tests: an open one keeps its loop running in this thread.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM, "NO BROWSER: install chromium (CI=true demands it)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page as a reader of a language, theme, width; with a script or without."""
    contexts: list[BrowserContext] = []

    def open_page(address: str, **wishes: Any) -> Page:
        wishes = {"locale": "en-GB", "viewport": {"width": 1280, "height": 900}} | wishes
        context = chromium.new_context(timezone_id="Asia/Kathmandu", **wishes)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(GIVE_UP_MS)
        page.on("pageerror", lambda error: pytest.fail(f"the script broke: {error}"))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()


class Site:
    """A gateway over one database, that can be cut off and brought back at the same address."""

    def __init__(self, folder: Path, workers: int, *more: str) -> None:
        self.db = str(folder / "fieldpost.db")
        self._workers = workers
        self._more = more
        self._port = 0
        self._programs: list[Program] = []
        self.bring_back()

    def bring_back(self) -> None:
        words = (self.db, str(self._port), str(self._workers), *self._more)
        self._programs.append(Program(MODULE, *words))
        self.address = self._programs[-1].wait_for(r"listening on (\S+)/ ")[1]
        self._port = int(self.address.rpartition(":")[2])

    def cut(self) -> None:
        self._programs[-1].kill()

    def worker(self) -> Program:
        """Start a process that does one job at a time."""
        worker = Program(MODULE, self.db, "0", "1", "--work", *self._more)
        self._programs.append(worker)
        worker.wait_for("workers do the jobs")
        return worker

    def close(self) -> None:
        for program in self._programs:
            if program.process.poll() is None:
                program.kill()

    def post(self, target: str, value: Any) -> Any:
        request = urllib.request.Request(
            self.address + target, json.dumps(value).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def deliver(self, number: int, value: float, device: str = "shed") -> None:
        reading = {
            "id": f"{device}-7f3a17c21-{number}", "sensor": "dht22.temperature", "value": value,
            "unit": "Cel", "at_ms": int(time.time() * 1000),
        }  # fmt: skip
        self.post("/v1/readings", {"device": device, "readings": [reading]})

    def ask(self, kind: str, **args: Any) -> int:
        return int(self.post("/v1/jobs", {"kind": kind, "args": args})["id"])


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def opened(workers: int, *more: str) -> Site:
        sites.append(Site(tmp_path, workers, *more))
        return sites[-1]

    yield opened
    for site in sites:
        site.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gateway with a worker and a bit of everything to see."""
    site = Site(tmp_path_factory.mktemp("site"), 1)
    site.deliver(1, 20.5)
    site.deliver(5, 21.5)
    site.post(
        "/v1/readings",
        {"device": "shed", "readings": [{"id": "<b>", "sensor": "s", "value": "x"}]},
    )
    wide = {"value": -1.23456e100, "unit": "W" * 30, "at_ms": int(time.time() * 1000)}
    readings = [{"id": f"w{n}", "sensor": f"{n}" + "W" * 60, **wide} for n in range(9)]
    site.post("/v1/readings", {"device": "W" * 64, "readings": readings})
    site.ask("fails_once")
    site.ask("slow")
    yield site
    site.close()
