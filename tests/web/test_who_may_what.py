"""The table of who may what, over every resource there is: a new one must be given its line."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from yarl import URL

from gateway.store import devices, sessions
from tests.web.conftest import Open
from tests.web.house import NOW_MS, Answer, House, body, sign

ANYONE = {"stranger", "device", "bearer", "asking device", "token", "browser", "open"}
DELIVER = {"device", "bearer", "asking device", "token", "open"}
ASK = {"asking device", "token", "open"}
FOLLOW = ASK | {"browser"}
READ = {"token", "browser", "open"}
CHANGE = {"token", "open"}
FORM = {"token", "browser", "open"}
KEYS = {"token"}

MAY = {
    "GET /": ANYONE,
    "GET /healthz": ANYONE,
    "GET /readyz": ANYONE,
    "GET /login": ANYONE,
    "POST /login": ANYONE,
    "GET /page/fieldpost.css": ANYONE,
    "GET /page/fieldpost.js": ANYONE,
    "GET /page/icon.svg": ANYONE,
    "POST /v1/readings": DELIVER,
    "GET /v1/readings": READ,
    "POST /v1/jobs": ASK,
    "GET /v1/jobs": FOLLOW,
    "GET /v1/jobs/{id}": FOLLOW,
    "POST /v1/jobs/{id}/retry": CHANGE,
    "POST /v1/jobs/{id}/discard": CHANGE,
    "POST /v1/jobs/{id}/cancel": CHANGE,
    "POST /v1/imports": CHANGE,
    "GET /v1/imports/{id}": READ,
    "GET /v1/reports/{name}": READ,
    "GET /v1/status": READ,
    "GET /v1/openapi.json": READ,
    "GET /v1/devices": READ,
    "GET /v1/events": READ,
    "GET /v1/alarms": READ,
    "POST /v1/alarms/{id}/acknowledge": CHANGE,
    "POST /v1/alarms/{id}/close": CHANGE,
    "GET /metrics": READ,
    "POST /v1/devices": KEYS,
    "POST /v1/devices/{device}/rotate": KEYS,
    "POST /v1/devices/{device}/revoke": KEYS,
    "GET /status": READ,
    "GET /status/parts/{part}": READ,
    "GET /status/devices/{id}": READ,
    "GET /status/devices/{id}/readings.csv": READ,
    "GET /status/jobs": READ,
    "GET /status/jobs/{id}": READ,
    "GET /status/alarms/{id}": READ,
    "GET /status/ask": READ,
    "GET /charts/{sensor}/{span}.svg": READ,
    "POST /status/jobs": FORM,
    "POST /status/jobs/{id}/retry": FORM,
    "POST /status/jobs/{id}/discard": FORM,
    "POST /status/jobs/{id}/cancel": FORM,
    "POST /status/imports": FORM,
    "POST /status/alarms/{id}/acknowledge": FORM,
    "POST /status/alarms/{id}/close": FORM,
    "POST /logout": FORM,
}
CSRF = hashlib.sha256(b"taken from a page in test_login.py; here it is worked out").hexdigest()


async def asked_by(who: str, house: House) -> Callable[[str, str], Awaitable[Answer]]:
    """Return what sends a request as that caller; no form has its token but a browser's own."""
    await house.register("esp32-1")
    token, browser = "", {}
    if who == "token":
        token = house.keys.operator_token
    if who == "bearer":
        token = secrets.token_hex(32)
        await devices.give_bearer(house.db, "esp32-1", sessions.hashed(token), NOW_MS)
    if who == "asking device":
        await devices.let_ask(house.db, "esp32-1", True)
    if who in ("browser", "open"):
        browser = await as_browser(house, logs_in=who == "browser")

    async def ask(method: str, target: str) -> Answer:
        sent = None if method == "GET" else b"{}"
        if who in ("device", "asking device"):
            key = house.keys.device_key("esp32-1", 1)
            nonce = secrets.token_hex(16)
            named = {"Authorization": sign(key, "esp32-1", nonce, method, target, sent or b"")}
        else:
            named = {"Authorization": f"Bearer {token}"} if token else dict(browser)
        if sent is not None:
            named["Content_Type"] = "application/json"
        return await head_of(house, method, target, sent, named)

    return ask


async def head_of(
    house: House, method: str, target: str, sent: bytes | None, named: dict[str, str]
) -> Answer:
    """Return an answer without its body: one of them has no end."""
    url = URL(f"http://127.0.0.1:{house.port}{target}", encoded=True)
    headers = {name.replace("_", "-"): value for name, value in named.items()}
    async with house.session.request(
        method, url, data=sent, headers=headers, allow_redirects=False
    ) as got:
        return Answer(got.status, got.headers, b"")


async def as_browser(house: House, *, logs_in: bool) -> dict[str, str]:
    """Return the headers of a browser that is logged in, with the token of its page's forms."""
    named = {}
    if logs_in:
        link = await sessions.make_link(house.db, NOW_MS)
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        answer = await house.ask("POST", "/login", f"t={link}".encode(), **form)
        house.session.cookie_jar.clear()
        named["Cookie"] = answer.headers["Set-Cookie"].partition(";")[0]
    page = await house.ask("GET", "/status/ask", Accept="text/html", **named)
    named["X_CSRF_Token"] = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    assert len(named["X_CSRF_Token"]) == 64
    return named


def is_let_in(answer: Answer) -> bool:
    return answer.status not in (401, 403)


@pytest.mark.parametrize("who", sorted(ANYONE))
async def test_a_caller_may_what_the_table_says_and_nothing_else(
    open_house: Open, who: str
) -> None:
    house = await open_house(open=who == "open")
    ask = await asked_by(who, house)
    let_in = set()
    for line in MAY:
        method, _, path = line.partition(" ")
        if line == "POST /logout" and who == "browser":  # it would be the last thing it may
            let_in.add(line)
            continue
        target = path.replace("{", "").replace("}", "").replace("/id", "/1")
        answer = await ask(method, target)
        assert answer.status < 500, line
        if is_let_in(answer):
            let_in.add(line)
    assert let_in == {line for line, may in MAY.items() if who in may}


async def test_every_resource_has_its_line_in_the_table(house: House) -> None:
    there = {
        f"{route.method} {route.resource.canonical}"
        for route in house.app.router.routes()
        if route.method != "HEAD" and route.resource is not None
    }
    assert there == MAY.keys()


@pytest.mark.parametrize("line", sorted(line for line in MAY if MAY[line] is FORM))
async def test_no_form_is_taken_from_a_browser_without_its_token(
    open_house: Open, line: str
) -> None:
    closed, opened = await open_house(), await open_house(open=True, folder="open")
    target = line.partition(" ")[2].replace("{id}", "1")
    for house, named in ((closed, await as_browser(closed, logs_in=True)), (opened, {})):
        told: dict[str, Any] = named | {"X_CSRF_Token": CSRF}
        answer = await house.ask("POST", target, body({}), Content_Type="application/json", **told)
        assert answer.status == 403
        assert "load its page again" in answer.json["detail"]
