"""Where experiments happen: a folder of their own, real processes, and the doors into them."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from gateway.languages import LANGUAGES, tongue
from tools.children import Child, Children
from tools.scene import free_port

READY_S = 30.0
LOOK_S = 0.05  # often enough for who watches, seldom enough not to be what is measured
SERVE = "tools.lab.serve"  # `gateway serve`, with the experiments' kinds beside the shipped ones


class Gateway:
    """One gateway on one database, through all its lives. In open mode: the loopback only."""

    def __init__(self, site: "Site", db: str, flags: tuple[object, ...]) -> None:
        self.db = db
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._site = site
        self._flags = flags
        self._child: Child | None = None

    async def start(self, *more: object) -> None:
        """Start it and wait until it answers; `more` are flags for this life."""
        arguments = ("--db", self.db, "--port", self.port, "--open", *self._flags, *more)
        with self._site.log.open("ab") as log:
            self._child = await self._site.children.start(
                "the gateway", "-m", SERVE, *arguments, stdout=log, stderr=log
            )
        await self._site.until(self._answers, "the gateway answers", READY_S)

    async def kill(self) -> None:
        """SIGKILL: it gets no chance to say good-bye."""
        if self._child is not None:
            self._child.process.kill()
            await self._child.process.wait()

    async def stop(self) -> None:
        """SIGTERM, and wait for its end."""
        if self._child is not None:
            self._child.process.terminate()
            await self._child.process.wait()

    async def ask(self, kind: str, args: dict[str, Any], **headers: str) -> dict[str, Any]:
        """POST a job; return it as answered."""
        body = {"kind": kind, "args": args}
        async with self._site.http.post(
            f"{self.url}/v1/jobs", json=body, headers=headers
        ) as answer:
            answer.raise_for_status()
            job: dict[str, Any] = await answer.json()
            return job

    async def job(self, id: int) -> dict[str, Any] | None:
        """Return a job as it is now; None where the gateway knows none of that id."""
        async with self._site.http.get(f"{self.url}/v1/jobs/{id}") as answer:
            if answer.status == 404:
                return None
            answer.raise_for_status()
            job: dict[str, Any] = await answer.json()
            return job

    async def ended(self, ids: list[int], within_s: float = 120.0) -> list[dict[str, Any]]:
        """Wait until all of these jobs have ended, and return them."""
        over: dict[int, dict[str, Any]] = {}

        async def all_over() -> bool:
            for id in ids:
                if id not in over:
                    job = await self.job(id)
                    if job is None or job["state"] not in ("done", "failed", "discarded"):
                        return False
                    over[id] = job
            return True

        await self._site.until(all_over, "all jobs have ended", within_s)
        return [over[id] for id in ids]

    async def deliver(self, device: str, readings: list[dict[str, Any]]) -> dict[str, Any]:
        """POST a batch; return the answer."""
        body = json.dumps({"device": device, "readings": readings})
        headers = {"Content-Type": "application/json"}
        async with self._site.http.post(
            f"{self.url}/v1/readings", data=body, headers=headers
        ) as answer:
            answer.raise_for_status()
            verdicts: dict[str, Any] = await answer.json()
            return verdicts

    async def page(self, path: str = "/status") -> str:
        """Return a page as HTML, in English."""
        headers = {"Accept": "text/html", "Accept-Language": "en"}
        async with self._site.http.get(self.url + path, headers=headers) as answer:
            answer.raise_for_status()
            return await answer.text()

    async def _answers(self) -> bool:
        try:
            async with self._site.http.get(f"{self.url}/healthz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


class Site:
    """One experiment's place. All that it started ends with `children`.

    Args:
        seed: of `random`, which is all the chance that an experiment takes.
        scale: 1.0 for people; tests use less, and experiments make fewer or shorter what they can.
        language: one of LANGUAGES, of what the finding says.
    """

    def __init__(
        self,
        folder: Path,
        children: Children,
        http: aiohttp.ClientSession,
        seed: int = 1,
        scale: float = 1.0,
        language: str = LANGUAGES[0],
    ) -> None:
        self.folder = folder
        self.children = children
        self.http = http
        self.random = random.Random(seed)
        self.seed = seed
        self.scale = scale
        self.language = language
        self._tongue = tongue(language)
        self.log = folder / "gateway.log"
        self._gateways = 0

    def gettext(self, message: str, **values: object) -> str:
        """Say it in the reader's language; experiments call it `_`. `%(name)s` is that value."""
        return self._tongue.gettext(message, **values)

    def number(self, value: float, digits: int = 0) -> str:
        """Return a number as the reader writes it, rounded to so many digits."""
        return self._tongue.number(round(value, digits) if digits else round(value))

    async def gateway(self, *flags: object, db: str | None = None) -> Gateway:
        """Start a gateway on a database of its own, unless `db` says which."""
        self._gateways += 1
        gateway = Gateway(self, db or str(self.folder / f"lab-{self._gateways}.db"), flags)
        await gateway.start()
        return gateway

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: str, within_s: float = 60.0
    ) -> float:
        """Wait until it holds; return how long that took, in s.

        Raises:
            TimeoutError: with `what`, when it does not within `within_s`.
        """
        began = time.monotonic()
        while not await holds():
            if time.monotonic() - began > within_s:
                raise TimeoutError(f"not within {within_s:g} s: {what}")
            await asyncio.sleep(LOOK_S)
        return time.monotonic() - began
