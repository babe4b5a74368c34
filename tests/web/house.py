"""A whole gateway for the tests: real database, real sockets, a clock that stands still."""

import asyncio
import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, TCPConnector, web
from yarl import URL

from gateway.config import Config
from gateway.events import Bus
from gateway.ingest import Ingest
from gateway.keys import Keys
from gateway.pool import Pool
from gateway.store import devices, queries
from gateway.store.database import Database
from gateway.web import Runner, application

NOW_MS = 1_764_529_200_000
BOOT = "7f3a17c21"
GIVE_UP_S = 15
_LOOK = queries.load("jobs").some
REGISTRY = "tests.services.job_kinds:registry"


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Watched(Database):
    """A database that counts the looks of those who wait for jobs."""

    looks = 0

    async def all(self, sql: str, params: Any = ()) -> list[sqlite3.Row]:
        self.looks += sql == _LOOK
        return await super().all(sql, params)


@dataclass
class House:
    """A gateway that runs, and a client beside it."""

    db: "Watched"
    keys: Keys
    port: int
    session: ClientSession
    app: web.Application
    now_ms: list[int] = field(default_factory=lambda: [NOW_MS])
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    woken: list[int] = field(default_factory=lambda: [0])  # how often the workers were told
    bus: Bus = field(default_factory=Bus)

    @property
    def looks(self) -> int:
        """How often it was looked at what somebody waits for."""
        return self.db.looks

    async def ask(
        self, method: str, target: str, body: bytes | None = None, **headers: str
    ) -> Answer:
        """Send a request; a header's name is written with _ for -."""
        url = URL(f"http://127.0.0.1:{self.port}{target}", encoded=True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, url, data=body, headers=named, allow_redirects=False
        ) as got:
            return Answer(got.status, got.headers, await got.read())

    async def operator(self, target: str, **headers: str) -> Answer:
        token = f"Bearer {self.keys.operator_token}"
        return await self.ask("GET", target, Authorization=token, **headers)

    async def signed(
        self,
        device: str,
        body: bytes,
        method: str = "POST",
        target: str = "/v1/readings",
        key: bytes | None = None,
        **headers: str,
    ) -> Answer:
        """Send a request signed as `device`, and check that the answer to it is signed."""
        key = key or self.keys.device_key(device, 1)
        nonce = secrets.token_hex(16)
        authorization = sign(key, device, nonce, method, target, body)
        answer = await self.ask(method, target, body, Authorization=authorization, **headers)
        assert answer.headers.get("Fieldpost-Signature") == expected(key, device, nonce, answer)
        assert "Content-Encoding" not in answer.headers
        if method != "HEAD":
            assert answer.headers["Content-Length"] == str(len(answer.body))
        return answer

    async def job(self, do: str = "nothing", *, kind: str = "act", **headers: str) -> Answer:
        """Ask, as the operator, for a job of tests/services/job_kinds.py."""
        return await self.ask_for({"kind": kind, "args": {"do": do, "mark": "a"}}, **headers)

    async def ask_for(self, job: Any, **headers: str) -> Answer:
        sent = job if isinstance(job, bytes) else body(job)
        named = {"Authorization": f"Bearer {self.keys.operator_token}"} | headers
        return await self.ask("POST", "/v1/jobs", sent, **named)

    async def decide(self, job_id: int, verb: str) -> Answer:
        token = f"Bearer {self.keys.operator_token}"
        return await self.ask("POST", f"/v1/jobs/{job_id}/{verb}", Authorization=token)

    async def until(self, job_id: int, state: str) -> Any:
        """Return the job as soon as it is in that state."""
        target = f"/v1/jobs/{job_id}"
        job = (await self.operator(target)).json
        async with asyncio.timeout(GIVE_UP_S):
            while job["state"] != state:
                job = (await self.operator(f"{target}?wait=1")).json
        return job

    async def register(self, device: str) -> bytes:
        return self.keys.device_key(device, await devices.register(self.db, device, NOW_MS))

    async def raw(self, *pieces: bytes, pause_s: float = 0.0, wait: bool = True) -> bytes:
        """Send the bytes as they are; return all that comes until the gateway closes.

        Args:
            wait: False does not wait for the closing, only for the first answer.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        answer = asyncio.ensure_future(reader.read() if wait else first_answer(reader))
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                if pause_s:
                    await asyncio.wait([answer], timeout=pause_s)
        except ConnectionError:
            pass  # the answer came before the end of what was to be sent
        try:
            return await asyncio.wait_for(answer, GIVE_UP_S)
        finally:
            answer.cancel()
            writer.close()


def sign(key: bytes, device: str, nonce: str, method: str, target: str, body: bytes) -> str:
    """Return an Authorization, worked out here and not by the code under test."""
    lines = ["fieldpost-request-1", method, target, device, nonce, hashlib.sha256(body).hexdigest()]
    signature = hmac.new(key, "\n".join(lines).encode(), "sha256").hexdigest()
    return f'Fieldpost device="{device}", nonce="{nonce}", signature="{signature}"'


def expected(key: bytes, device: str, nonce: str, answer: Answer) -> str:
    """Return the signature that the answer must carry."""
    lines = [
        "fieldpost-answer-1", device, nonce, str(answer.status),
        answer.headers.get("Retry-After", ""), hashlib.sha256(answer.body).hexdigest(),
    ]  # fmt: skip
    return hmac.new(key, "\n".join(lines).encode(), "sha256").hexdigest()


def batch(device: str = "esp32-1", count: int = 1, first: int = 1, **more: Any) -> dict[str, Any]:
    """Return a batch of readings with ids in the grammar."""
    readings = [
        {
            "id": f"{device}-{BOOT}-{n}",
            "sensor": "dht22.temperature",
            "value": 20 + n,
            "unit": "Cel",
            "at_ms": NOW_MS - 1000,
        }
        for n in range(first, first + count)
    ]
    return {"device": device, "readings": readings} | more


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def problem_of(answer: Answer) -> Any:
    """Check what every failure carries, and return the problem."""
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Fieldpost-Protocol"] == "1"
    problem = answer.json
    assert problem["status"] == answer.status
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    return problem


def parsed(raw: bytes) -> Answer:
    """Return the first answer of what came over a socket."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    headers = BytesHeaderParser().parsebytes(fields)
    return Answer(int(line.split()[1]), headers, rest[: int(headers.get("Content-Length", 0))])


async def first_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(int(parsed(head).headers["Content-Length"]))


async def start(
    folder: Path,
    *,
    peer: str | None = None,
    ingest: Callable[[Database], Any] = Ingest,
    registry: str = REGISTRY,
    workers: int = 0,
    **settings: Any,
) -> tuple[House, Callable[[], Awaitable[None]]]:
    """Return a running gateway and what stops it.

    Args:
        peer: the address that requests seem to come from, as behind a proxy.
        ingest: makes the door for readings.
        registry: of the kinds of jobs.
        workers: that do the jobs; by the real clock.
        settings: of Config.
    """
    # Of tests that send as fast as they can: whoever tests a limit sets it.
    unlimited = {"min_free_bytes": 0, "requests_per_minute": 0, "readings_per_minute": 0}
    config = Config(db=str(folder / "fieldpost.db"), **(unlimited | settings))
    db, keys, clock = await Watched.open(config.db), Keys.open(config.folder), [NOW_MS]
    stopping = asyncio.Event()
    bus = Bus()
    pool = Pool(db, registry, config.for_jobs(), workers=workers, bus=bus)
    woken = [0]
    door = Ingest(db, bus) if ingest is Ingest else ingest(db)

    def wake() -> None:
        woken[0] += 1
        pool.wake()

    app = application(
        db=db, ingest=door, bus=bus, config=config, keys=keys, now_ms=lambda: clock[0],
        queue=replace(pool.queue, clock=None), kinds=pool.kinds, wake=wake, stopping=stopping,
    )  # fmt: skip
    if peer is not None:
        app.middlewares.insert(0, _coming_from(peer))
    runner = Runner(app, stop_timeout_s=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    session = ClientSession(auto_decompress=False, connector=TCPConnector(limit=0))
    working = asyncio.create_task(pool.run())

    async def stop() -> None:
        stopping.set()
        try:
            await session.close()
            await pool.stop(0)
            await working
        finally:
            await runner.cleanup()
            await db.close()

    return House(db, keys, runner.addresses[0][1], session, app, clock, stopping, woken, bus), stop


def _coming_from(peer: str) -> Any:
    @web.middleware
    async def around(request: web.Request, handler: Any) -> web.StreamResponse:
        return await handler(request.clone(remote=peer))

    return around
