"""How an operator's browser comes in, and how it is kept from doing what its owner did not ask."""

import asyncio
from typing import Any

import pytest

from gateway.store import sessions
from gateway.store.database import Database
from gateway.web.session import derived_token
from tests.web.conftest import Open
from tests.web.house import NOW_MS, Answer, House, problem_of

FORM = {"Content_Type": "application/x-www-form-urlencoded"}
BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
LIFE_MS = sessions.SESSION_LIFE_S * 1000


async def link_of(house: House) -> str:
    return await sessions.make_link(house.db, house.now_ms[0])


async def log_in(house: House, link: str, **headers: str) -> Answer:
    answer = await house.ask("POST", "/login", f"t={link}".encode(), **FORM, **headers)
    house.session.cookie_jar.clear()  # each test brings the cookie it means to bring
    return answer


async def cookie_of(house: House) -> str:
    answer = await log_in(house, await link_of(house))
    assert (answer.status, answer.headers["Location"]) == (303, "/status")
    return str(answer.headers["Set-Cookie"].partition(";")[0])


def csrf_of(cookie: str) -> str:
    return derived_token(cookie.partition("=")[2])


async def is_in(house: House, cookie: str) -> bool:
    return (await house.ask("GET", "/v1/status", Cookie=cookie)).status == 200


async def test_a_link_logs_in_once(house: House) -> None:
    link = await link_of(house)
    assert (await log_in(house, link)).status == 303
    again = await log_in(house, link, **BROWSER)
    assert again.status == 401
    assert "this link is void" in again.text
    assert "Set-Cookie" not in again.headers


async def test_looking_at_a_link_does_not_use_it_up(house: House) -> None:
    link = await link_of(house)
    for _ in range(3):
        shown = await house.ask("GET", f"/login?t={link}", **BROWSER)
        assert (shown.status, "Set-Cookie" in shown.headers) == (200, False)
        assert f'name="t" value="{link}"' in shown.text
        assert shown.headers["Referrer-Policy"] == "no-referrer"
    assert (await log_in(house, link)).status == 303


async def test_a_link_is_void_after_ten_minutes_and_so_is_its_session_in_the_end(
    house: House,
) -> None:
    late, in_time = await link_of(house), await link_of(house)
    house.now_ms[0] += 600_000 - 1
    cookie = (await log_in(house, in_time)).headers["Set-Cookie"].partition(";")[0]
    house.now_ms[0] += 1
    assert (await log_in(house, late)).status == 401
    assert await is_in(house, cookie)
    assert await sessions.is_open(house.db, cookie.partition("=")[2], NOW_MS + LIFE_MS)
    assert not await sessions.is_open(house.db, cookie.partition("=")[2], NOW_MS + 2 * LIFE_MS)


async def test_of_many_who_press_the_button_at_once_one_comes_in(house: House) -> None:
    link = await link_of(house)
    answers = await asyncio.gather(*(log_in(house, link) for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [303] + [401] * 7


async def test_a_void_link_and_one_that_never_was_can_not_be_told_apart(house: House) -> None:
    used = await link_of(house)
    await log_in(house, used)
    told = [await log_in(house, link, **BROWSER) for link in (used, "0" * 64, "", "é\x00")]
    assert {(answer.status, answer.body) for answer in told} == {(401, told[0].body)}
    problems = [problem_of(await log_in(house, link)) for link in (used, "0" * 64)]
    assert problems[0]["detail"] == problems[1]["detail"]


async def test_after_too_many_wrong_links_not_even_a_right_one_is_looked_at(
    open_house: Open,
) -> None:
    house = await open_house(peer="192.0.2.7")
    link = await link_of(house)
    statuses = [(await log_in(house, "0" * 64)).status for _ in range(21)]
    assert statuses == [401] * 20 + [429]
    answer = await log_in(house, link)
    assert problem_of(answer)["status"] == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 3
    assert await sessions.is_link(house.db, link, NOW_MS)  # it was not used up by that


async def test_the_cookie_is_kept_from_scripts_and_from_other_sites(house: House) -> None:
    given = (await log_in(house, await link_of(house))).headers["Set-Cookie"]
    name, *attributes = given.split("; ")
    assert name.startswith(f"fieldpost-{house.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={LIFE_MS // 1000}"} <= {*attributes}
    assert "Secure" not in attributes  # over plain HTTP no browser would send it back


async def test_the_database_holds_nothing_that_logs_anybody_in(house: House) -> None:
    link, cookie = await link_of(house), await cookie_of(house)
    rows = await house.db.all("SELECT sha256 FROM session UNION SELECT sha256 FROM login_link")
    held = [row["sha256"] for row in rows]
    assert len(held) == 2
    assert not {link, cookie.partition("=")[2]} & {*held}
    assert not await is_in(house, f"{cookie.partition('=')[0]}={held[0]}")


async def test_logging_out_ends_the_session_at_once(house: House) -> None:
    cookie = await cookie_of(house)
    other = await cookie_of(house)
    assert await is_in(house, cookie)
    sent = f"csrf={csrf_of(cookie)}".encode()
    answer = await house.ask("POST", "/logout", sent, Cookie=cookie, **FORM)
    assert (answer.status, answer.headers["Location"]) == (303, "/login")
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert not await is_in(house, cookie)
    assert await is_in(house, other)


async def test_logging_everybody_out_ends_links_and_sessions(house: House) -> None:
    link, cookie = await link_of(house), await cookie_of(house)
    assert await sessions.log_everybody_out(house.db) == 1
    assert not await is_in(house, cookie)  # it was never at hand here
    assert (await log_in(house, link)).status == 401


async def test_a_link_made_by_another_process_is_taken(house: House) -> None:
    other = await Database.open(house.db.path)
    try:
        link = await sessions.make_link(other, NOW_MS)
    finally:
        await other.close()
    assert (await log_in(house, link)).status == 303


async def test_a_browser_without_a_session_is_led_to_the_log_in_and_a_program_is_told(
    house: House,
) -> None:
    for target in ("/status", "/status/jobs/1"):
        answer = await house.ask("GET", target, **BROWSER)
        assert (answer.status, answer.headers["Location"]) == (303, "/login")
        assert problem_of(await house.ask("GET", target))["status"] == 401
    assert problem_of(await house.ask("GET", "/v1/status", **BROWSER))["status"] == 401
    assert "python -m gateway login" in (await house.ask("GET", "/login", **BROWSER)).text


@pytest.mark.parametrize(
    "named",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
async def test_a_form_sent_by_another_sites_page_is_refused_even_with_its_token(
    house: House, named: dict[str, Any]
) -> None:
    cookie = await cookie_of(house)
    sent = f"csrf={csrf_of(cookie)}".encode()
    answer = await house.ask("POST", "/logout", sent, Cookie=cookie, **FORM, **named)
    assert problem_of(answer)["status"] == 403
    assert await is_in(house, cookie)


async def test_a_form_of_our_own_page_is_taken_whatever_its_referrer_policy(house: House) -> None:
    for origin in ("null", f"http://127.0.0.1:{house.port}"):
        cookie = await cookie_of(house)
        sent = f"csrf={csrf_of(cookie)}".encode()
        named = {"Origin": origin, "Sec_Fetch_Site": "same-origin"}
        answer = await house.ask("POST", "/logout", sent, Cookie=cookie, **FORM, **named)
        assert answer.status == 303


async def test_a_token_of_forms_is_good_for_its_own_session_only(house: House) -> None:
    mine, other = await cookie_of(house), await cookie_of(house)
    for token in (csrf_of(other), "", csrf_of(mine)[:-1], "é" * 64):
        sent = f"csrf={token}".encode()
        answer = await house.ask("POST", "/logout", sent, Cookie=mine, **FORM)
        assert problem_of(answer)["status"] == 403
    answer = await house.ask("POST", f"/logout?csrf={csrf_of(mine)}", b"x", Cookie=mine)
    assert answer.status == 303


async def test_a_browsers_log_in_changes_nothing_under_v1(house: House) -> None:
    cookie = await cookie_of(house)
    named = {"Cookie": cookie, "X_CSRF_Token": csrf_of(cookie), "Content_Type": "application/json"}
    answer = await house.ask("POST", "/v1/jobs", b'{"kind": "act"}', **named)
    assert problem_of(answer)["status"] == 403
    assert "page's forms" in problem_of(answer)["detail"]


async def test_a_cookie_that_is_none_of_ours_is_nobody(house: House) -> None:
    name = (await cookie_of(house)).partition("=")[0]
    for value in ("", "0" * 64, "x" * 5000, "\xff"):
        assert not await is_in(house, f"{name}={value}")
