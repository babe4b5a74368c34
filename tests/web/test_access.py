"""Who may do what, over a real socket."""

from typing import Any

import pytest

from tests.web.conftest import Open
from tests.web.house import NOW_MS, Answer, House, batch, body, problem_of, sign

NONCE = "0" * 32
JSON = {"Content_Type": "application/json"}
READ = ("/v1/readings", "/v1/devices", "/v1/status", "/status")
FREE = ("/healthz", "/readyz", "/page/fieldpost.css")


def essence(answer: Answer) -> Any:
    """Return what a caller can tell two refusals apart by."""
    problem = problem_of(answer)
    fields = {name: value for name, value in problem.items() if name != "request_id"}
    varying = ("X-Request-ID", "Date", "Content-Length")
    headers = {name: answer.headers[name] for name in answer.headers if name not in varying}
    return answer.status, fields, headers


async def test_a_device_delivers_and_the_answer_is_signed(house: House) -> None:
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch(count=3)), X_Request_ID="r1")
    assert answer.json == {
        "stored": 3, "duplicates": 0, "rejected": [], "server_ms": NOW_MS, "request_id": "r1",
    }  # fmt: skip


async def test_unknown_device_wrong_key_and_keyless_device_can_not_be_told_apart(
    open_house: Open,
) -> None:
    house = await open_house(open=True)
    await house.register("known")
    named_only = body(batch("keyless"))
    assert (await house.ask("POST", "/v1/readings", named_only, **JSON)).status == 200
    refused = []
    for device in ("known", "unknown", "keyless"):
        sent = body(batch(device))
        wrong = sign(b"x" * 32, device, NONCE, "POST", "/v1/readings", sent)
        refused.append(essence(await house.ask("POST", "/v1/readings", sent, Authorization=wrong)))
    assert refused[0] == refused[1] == refused[2]
    assert refused[0][0] == 401


@pytest.mark.parametrize("changed", ["method", "target", "body", "device", "nonce"])
async def test_a_signature_covers_everything_that_is_said(house: House, changed: str) -> None:
    key = await house.register("esp32-1")
    await house.register("esp32-2")
    said = {
        "device": "esp32-1",
        "nonce": NONCE,
        "method": "POST",
        "target": "/v1/readings",
        "body": body(batch()),
    }
    other = {
        "device": "esp32-2",
        "nonce": "1" * 32,
        "method": "PUT",
        "target": "/v1/readings?x=1",
        "body": body(batch(count=2)),
    }
    signed_for = said | {changed: other[changed]}
    signature = sign(key, **signed_for).rpartition("signature=")[2]  # type: ignore[arg-type]
    authorization = f'Fieldpost device="esp32-1", nonce="{NONCE}", signature={signature}'
    answer = await house.ask("POST", "/v1/readings", said["body"], Authorization=authorization)
    assert problem_of(answer)["status"] == 401
    assert "Fieldpost-Signature" not in answer.headers


async def test_a_target_is_signed_as_it_was_sent_and_not_as_it_is_decoded(house: House) -> None:
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch()), target="/v1/r%65adings?a=%20%C3%A9&b")
    assert answer.status == 200


async def test_a_key_made_anew_is_good_at_once_and_the_old_one_soon_is_not(house: House) -> None:
    await house.register("esp32-1")
    old, new = (house.keys.device_key("esp32-1", generation) for generation in (1, 2))
    assert (await house.signed("esp32-1", body(batch()), key=old)).status == 200
    await house.db.write(lambda c: c.execute("UPDATE device SET generation = 2").rowcount)
    assert (await house.signed("esp32-1", body(batch()), key=new)).status == 200
    sent = body(batch())
    authorization = sign(old, "esp32-1", NONCE, "POST", "/v1/readings", sent)
    assert (
        await house.ask("POST", "/v1/readings", sent, Authorization=authorization)
    ).status == 401


async def test_a_device_may_deliver_and_nothing_else(house: House) -> None:
    await house.register("esp32-1")
    for target in READ:
        answer = await house.signed("esp32-1", b"", method="GET", target=target)
        assert problem_of(answer)["status"] == 403


async def test_a_device_may_not_speak_for_another(house: House) -> None:
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch("esp32-2")))
    assert problem_of(answer)["status"] == 403
    assert (await house.operator("/v1/readings")).json["readings"] == []


async def test_the_operator_may_do_everything(house: House) -> None:
    for target in READ:
        assert (await house.operator(target)).status == 200
    token = f"Bearer {house.keys.operator_token}"
    answer = await house.ask("POST", "/v1/readings", body(batch()), Authorization=token)
    assert answer.json["stored"] == 1


async def test_a_stranger_gets_what_is_for_anyone_and_is_told_what_to_do(house: House) -> None:
    for target in FREE:
        assert (await house.ask("GET", target)).status == 200
    for target in READ:
        answer = await house.ask("GET", target)
        assert "--open" in problem_of(answer)["detail"]
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Fieldpost, Bearer"
    answer = await house.ask("POST", "/v1/readings", body(batch()), **JSON)
    assert problem_of(answer)["status"] == 401


@pytest.mark.parametrize(
    "authorization", ["Bearer", "Bearer ", "Bearer " + "0" * 64, "Basic YTpi", "é", "Fieldpost"]
)
async def test_a_wrong_authorization_is_refused_in_open_mode_too(
    open_mode: House, authorization: str
) -> None:
    for method, target in (("GET", "/v1/readings"), ("POST", "/v1/readings")):
        answer = await open_mode.ask(
            method, target, b"{}" if method == "POST" else None, Authorization=authorization, **JSON
        )
        assert problem_of(answer)["status"] == 401


async def test_a_token_is_taken_over_plain_http_from_this_machine_only(open_house: Open) -> None:
    house = await open_house(peer="192.0.2.7")
    answer = await house.operator("/v1/status")
    assert problem_of(answer)["status"] == 403
    wrong = await house.ask("GET", "/v1/status", Authorization="Bearer wrong")
    assert essence(wrong) == essence(answer)
    assert (await house.ask("GET", "/healthz", Authorization="Bearer wrong")).status == 200


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"])
async def test_open_mode_lets_in_this_machine(open_house: Open, peer: str) -> None:
    house = await open_house(open=True, peer=peer)
    for target in READ:
        assert (await house.ask("GET", target)).status == 200
    assert (await house.ask("POST", "/v1/readings", body(batch()), **JSON)).json["stored"] == 1


@pytest.mark.parametrize("peer", ["192.0.2.7", "fe80::1%eth0", "::ffff:192.0.2.7", "", "x"])
async def test_open_mode_lets_in_no_other_machine(open_house: Open, peer: str) -> None:
    house = await open_house(open=True, peer=peer)
    assert (await house.ask("GET", "/v1/readings")).status == 401
    assert (await house.ask("POST", "/v1/readings", body(batch()), **JSON)).status == 401


async def test_open_lan_lets_in_everybody(open_house: Open) -> None:
    house = await open_house(open_lan=True, peer="192.0.2.7")
    for target in READ:
        assert (await house.ask("GET", target, Host="gateway.lan")).status == 200
    assert (await house.ask("POST", "/v1/readings", body(batch()), **JSON)).json["stored"] == 1


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.0.2.7", "[::2]:80"]
)
async def test_open_mode_answers_under_no_other_name(open_mode: House, host: str) -> None:
    answer = await open_mode.ask("GET", "/v1/readings", Host=host)
    assert problem_of(answer)["status"] == 403
    assert "http://localhost" in problem_of(answer)["detail"]


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:8080", "localhost.", "127.0.0.1", "[::1]", "[::1]:8080"]
)
async def test_open_mode_answers_under_every_name_of_the_loopback(
    open_mode: House, host: str
) -> None:
    assert (await open_mode.ask("GET", "/v1/readings", Host=host)).status == 200


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_open_mode_takes_no_body_that_a_foreign_page_could_send(
    open_mode: House, content_type: str | None
) -> None:
    named = {} if content_type is None else {"Content_Type": content_type}
    open_mode.session._skip_auto_headers = frozenset({"Content-Type"})  # type: ignore[assignment]
    answer = await open_mode.ask("POST", "/v1/readings", body(batch()), **named)
    assert problem_of(answer)["status"] == 415


async def test_a_signed_body_may_have_any_content_type(house: House) -> None:
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch()), Content_Type="text/plain")
    assert answer.status == 200


async def test_open_mode_still_verifies_who_says_it_signs_and_signs_back(open_mode: House) -> None:
    await open_mode.register("esp32-1")
    assert (await open_mode.signed("esp32-1", body(batch()))).status == 200
    assert (await open_mode.signed("esp32-1", body(batch("esp32-2")))).status == 403


@pytest.mark.parametrize(
    "host",
    ["gateway.lan:8080", "GATEWAY", "gateway.local.", "192.168.1.5:8080", "[fd00::5]:8080",
     "fieldpost.example.org", "x.home.arpa"],
)  # fmt: skip
async def test_open_lan_answers_under_addresses_local_names_and_those_it_was_told(
    open_house: Open, host: str
) -> None:
    house = await open_house(open_lan=True, peer="192.0.2.7", host_names=("fieldpost.example.org",))
    assert (await house.ask("GET", "/v1/readings", Host=host)).status == 200


@pytest.mark.parametrize("host", ["evil.example", "gateway.lan.evil.example:80", "1.2.3.4.nip.io"])
async def test_open_lan_answers_under_no_name_that_a_foreign_page_can_have(
    open_house: Open, host: str
) -> None:
    house = await open_house(open_lan=True, peer="192.0.2.7")
    answer = await house.ask("GET", "/v1/readings", Host=host)
    assert problem_of(answer)["status"] == 403
    assert "host_names" in problem_of(answer)["detail"]


@pytest.mark.parametrize("target", ["/v1/jobs/1/cancel", "/status/jobs/1/cancel", "/status/jobs"])
@pytest.mark.parametrize(
    "named", [{"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}]
)
async def test_in_open_mode_a_page_of_another_site_decides_nothing(
    open_mode: House, target: str, named: dict[str, str]
) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    answer = await open_mode.ask("POST", target, b"", **form, **named)
    assert problem_of(answer)["status"] == 403
