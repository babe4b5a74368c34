"""Webhooks to a real HTTP server: with one key until it knows, and when it wants to be told."""

import hashlib
import hmac
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web

from tests.services.errands import errands

KEY = "5e" * 32
PAYLOAD = {"b": [1, 2.5, None], "a": "olá"}


@dataclass
class Service:
    """What was told to it; it answers as in `answers`, then 204."""

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    told: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.told.append((dict(request.headers), await request.read()))
        status, headers = self.answers.pop(0) if self.answers else (204, {})
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=status or 200, headers=headers)


@asynccontextmanager
async def service(*answers: tuple[int, dict[str, str]]) -> AsyncIterator[Service]:
    one = Service(list(answers))
    app = web.Application()
    app.router.add_post("/hook", one.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield one
    finally:
        await runner.cleanup()


async def test_the_body_is_signed_and_carries_a_key(tmp_path: Path) -> None:
    async with service() as hook, errands(tmp_path, webhook_key=KEY) as on:
        job_id = await on.ask("send_webhook", url=hook.url, payload=PAYLOAD)
        assert (await on.ended(job_id))["state"] == "done"
    [(headers, body)] = hook.told
    assert json.loads(body) == PAYLOAD
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == f'"webhook:job-{job_id}"'
    right = hmac.new(bytes.fromhex(KEY), body, hashlib.sha256).hexdigest()
    assert headers["Fieldpost-Signature"] == right


async def test_it_is_told_again_with_the_same_key_and_body_until_it_knows(tmp_path: Path) -> None:
    async with service((500, {}), (0, {}), (429, {})) as hook, errands(tmp_path) as on:
        job_id = await on.ask("send_webhook", url=hook.url, payload=PAYLOAD, key="alarm-17")
        job = await on.ended(job_id)
    assert (job["state"], job["attempts"]) == ("done", 4)
    told = {(headers["Idempotency-Key"], body) for headers, body in hook.told}
    assert len(hook.told) == 4
    assert [key for key, _ in told] == ['"webhook:alarm-17"']
    assert "Fieldpost-Signature" not in hook.told[0][0]


async def test_what_is_known_under_a_key_is_not_told_again(tmp_path: Path) -> None:
    async with service() as hook, errands(tmp_path) as on:
        for _ in range(2):
            await on.ended(await on.ask("send_webhook", url=hook.url, payload={}, key="once"))
    assert len(hook.told) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422])
async def test_a_refusal_is_for_good_and_a_redirect_not_followed(
    tmp_path: Path, status: int
) -> None:
    async with service((status, {"Location": "/hook"})) as hook, errands(tmp_path) as on:
        job = await on.ended(await on.ask("send_webhook", url=hook.url, payload={}))
    assert (job["state"], job["attempts"]) == ("failed", 1)
    assert f"HTTP {status}" in job["error"]
    assert len(hook.told) == 1


@pytest.mark.parametrize(
    ("asked_for", "least_s", "most_s"),
    [
        ("120", 119, 121),
        ("999999999999", 3599, 3601),
        ("0", 1, 3),
        ("in 600 s", 500, 601),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 1, 3),
        ("soon", -1, 1),  # no wait of its own, so the usual one, and that is none here
    ],
)
async def test_retry_after_is_obeyed_within_bounds(
    tmp_path: Path, asked_for: str, least_s: float, most_s: float
) -> None:
    if asked_for == "in 600 s":  # as a date, counted from now
        asked_for = formatdate(time.time() + 600, usegmt=True)
    async with service((503, {"Retry-After": asked_for})) as hook, errands(tmp_path) as on:
        began_ms = time.time() * 1000
        job_id = await on.ask("send_webhook", url=hook.url, payload={})
        job = await on.until(job_id, lambda job: job["attempts"] == 1)
    assert least_s * 1000 <= job["run_at_ms"] - began_ms <= (most_s + 5) * 1000


async def test_a_service_that_never_answers_is_given_up_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # the backlog takes the connection
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        async with errands(tmp_path) as on:
            job_id = await on.ask("send_webhook", url=url, payload={}, timeout_s=0.1)
            job = await on.ended(job_id)
    assert (job["state"], job["attempts"]) == ("failed", 5)


@pytest.mark.parametrize("url", ["ftp://a/", "http://a b/", "http://[::1/"])
async def test_what_is_no_url_fails_for_good(tmp_path: Path, url: str) -> None:
    async with errands(tmp_path) as on:
        job = await on.ended(await on.ask("send_webhook", url=url, payload={}))
    assert (job["state"], job["attempts"]) == ("failed", 1)
