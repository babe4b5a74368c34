"""Keys are renewed and revoked, clients bring tokens, some devices may ask for jobs."""

import secrets
from typing import Any

import pytest

from gateway.store import alarms, devices, sessions
from gateway.web.keyring import FRESH_S
from tests.web.conftest import Open
from tests.web.house import NOW_MS, Answer, House, batch, body, problem_of, sign

JOB = {"kind": "act", "args": {"do": "nothing", "mark": "a"}}
JSON = {"Content_Type": "application/json"}


def key(house: House, generation: int, device: str = "esp32-1") -> bytes:
    return house.keys.device_key(device, generation)


async def status_with(house: House, signed_with: bytes, device: str = "esp32-1") -> int:
    sent = body(batch(device))
    made = sign(signed_with, device, secrets.token_hex(16), "POST", "/v1/readings", sent)
    return (await house.ask("POST", "/v1/readings", sent, Authorization=made)).status


async def bearer_of(house: House, device: str = "curl") -> str:
    token = secrets.token_hex(32)
    await devices.give_bearer(house.db, device, sessions.hashed(token), NOW_MS)
    return f"Bearer {token}"


async def test_both_keys_of_a_rotation_work_until_the_board_has_used_the_new_one(
    registered: House,
) -> None:
    assert await devices.rotate(registered.db, "esp32-1") == 2
    old, new = key(registered, 1), key(registered, 2)
    assert [await status_with(registered, k) for k in (old, old, new, new)] == [200] * 4
    assert await devices.identity(registered.db, "esp32-1") == (2, None, False)
    assert await status_with(registered, old) == 401


async def test_rotating_twice_leaves_the_key_in_use_and_the_last_made(registered: House) -> None:
    assert [await devices.rotate(registered.db, "esp32-1") for _ in range(2)] == [2, 3]
    statuses = [await status_with(registered, key(registered, n)) for n in (2, 1, 3, 1, 2)]
    assert statuses == [401, 200, 200, 401, 401]


async def test_registering_again_tells_the_newest_key_and_changes_nothing(house: House) -> None:
    for expected in (1, 1):
        assert await devices.register(house.db, "esp32-1", NOW_MS) == expected
    await devices.rotate(house.db, "esp32-1")
    assert await devices.register(house.db, "esp32-1", NOW_MS) == 2
    assert await devices.identity(house.db, "esp32-1") == (1, 2, False)


async def test_after_a_revocation_no_key_of_before_ever_works_again(registered: House) -> None:
    await devices.rotate(registered.db, "esp32-1")
    assert await devices.revoke(registered.db, "esp32-1")
    assert not await devices.revoke(registered.db, "esp32-1")
    assert await devices.rotate(registered.db, "esp32-1") is None
    assert [await status_with(registered, key(registered, n)) for n in (1, 2, 3)] == [401] * 3
    assert await devices.register(registered.db, "esp32-1", NOW_MS) == 3
    assert [await status_with(registered, key(registered, n)) for n in (1, 2, 3)] == [401, 401, 200]


async def test_a_device_that_only_delivered_in_open_mode_begins_with_generation_one(
    open_mode: House,
) -> None:
    assert (await open_mode.ask("POST", "/v1/readings", body(batch()), **JSON)).status == 200
    assert await devices.register(open_mode.db, "esp32-1", NOW_MS) == 1


async def test_who_could_speak_is_carried_over_when_the_database_was_damaged(
    registered: House,
) -> None:
    await devices.rotate(registered.db, "esp32-1")
    await registered.register("gone")
    await devices.revoke(registered.db, "gone")
    await bearer_of(registered)

    def carry(connection: Any) -> None:
        told = connection.execute(devices._sql.keyed).fetchall()
        connection.execute("DELETE FROM device")
        for name, identity in told:
            connection.execute(devices._sql.register_again, (name, identity, NOW_MS))

    before = [tuple(row)[:-3] for row in await devices.everybody(registered.db)]
    await registered.db.write(carry)
    after = [tuple(row)[:-3] for row in await devices.everybody(registered.db)]
    assert after == before
    assert await devices.identity(registered.db, "esp32-1") == (1, 2, False)
    assert await devices.register(registered.db, "gone", NOW_MS) == 2


async def test_a_token_delivers_for_its_own_device_only(house: House) -> None:
    token = await bearer_of(house)
    sent = await house.ask("POST", "/v1/readings", body(batch("curl")), Authorization=token)
    assert sent.json["stored"] == 1
    other = await house.ask("POST", "/v1/readings", body(batch("esp32-1")), Authorization=token)
    assert problem_of(other)["status"] == 403
    assert problem_of(await house.ask("GET", "/v1/status", Authorization=token))["status"] == 403


async def test_only_the_newest_token_is_good_and_none_after_its_revocation(house: House) -> None:
    old, new = await bearer_of(house), await bearer_of(house)
    sent = body(batch("curl"))
    assert (await house.ask("POST", "/v1/readings", sent, Authorization=old)).status == 401
    assert await devices.revoke_bearer(house.db, "curl")
    assert (await house.ask("POST", "/v1/readings", sent, Authorization=new)).status == 401
    assert not await devices.revoke_bearer(house.db, "curl")


@pytest.mark.parametrize(("allowed", "status"), [(False, 403), (True, 200)])
async def test_a_token_comes_in_plain_text_from_elsewhere_only_where_that_is_allowed(
    open_house: Open, allowed: bool, status: int
) -> None:
    house = await open_house(peer="192.0.2.7", allow_plain_bearer=allowed)
    token = await bearer_of(house)
    sent = await house.ask("POST", "/v1/readings", body(batch("curl")), Authorization=token)
    assert sent.status == status
    assert (await house.operator("/v1/status")).status == (401 if allowed else 403)


async def test_the_database_holds_no_token(house: House) -> None:
    token = (await bearer_of(house)).partition(" ")[2]
    [row] = await house.db.all("SELECT bearer_sha256 FROM device")
    assert len(row[0]) == 64
    stolen = await house.ask(
        "POST", "/v1/readings", body(batch("curl")), Authorization=f"Bearer {row[0]}"
    )
    assert (token == row[0], stolen.status) == (False, 401)


async def ask_as(house: House, device: str, target: str, sent: Any = None) -> Answer:
    method = "GET" if sent is None else "POST"
    return await house.signed(device, b"" if sent is None else body(sent), method, target)


async def test_a_device_that_may_ask_sees_its_own_jobs_and_no_others(house: House) -> None:
    for device in ("esp32-1", "esp32-2"):
        await house.register(device)
        await devices.let_ask(house.db, device, True)
    mine = await ask_as(house, "esp32-1", "/v1/jobs", JOB)
    theirs = await ask_as(house, "esp32-2", "/v1/jobs", JOB)
    await house.job()
    assert (mine.status, mine.headers["Location"]) == (202, f"/v1/jobs/{mine.json['id']}")
    listed = (await ask_as(house, "esp32-1", "/v1/jobs")).json["jobs"]
    assert [job["id"] for job in listed] == [mine.json["id"]]
    by_state = (await ask_as(house, "esp32-1", "/v1/jobs?state=done")).json["jobs"]
    assert by_state == []
    own = await ask_as(house, "esp32-1", f"/v1/jobs/{mine.json['id']}")
    assert own.json["id"] == mine.json["id"]
    hidden = await ask_as(house, "esp32-1", f"/v1/jobs/{theirs.json['id']}")
    nothing = await ask_as(house, "esp32-1", "/v1/jobs/999")
    assert [problem_of(one)["detail"] for one in (hidden, nothing)] == [
        problem_of(nothing)["detail"]
    ] * 2
    assert len((await house.operator("/v1/jobs")).json["jobs"]) == 3


async def test_two_devices_may_use_the_same_idempotency_key(house: House) -> None:
    ids = []
    for device in ("esp32-1", "esp32-2", "esp32-1"):
        await house.register(device)
        await devices.let_ask(house.db, device, True)
        answer = await house.signed(
            device, body(JOB), target="/v1/jobs", Idempotency_Key='"nightly"'
        )
        ids.append(answer.json["id"])
    assert ids[0] == ids[2] != ids[1]


async def test_a_device_decides_nothing_about_jobs_not_even_its_own(house: House) -> None:
    await house.register("esp32-1")
    await devices.let_ask(house.db, "esp32-1", True)
    job = (await ask_as(house, "esp32-1", "/v1/jobs", JOB)).json["id"]
    for verb in ("retry", "discard", "cancel"):
        answer = await ask_as(house, "esp32-1", f"/v1/jobs/{job}/{verb}", {})
        assert problem_of(answer)["status"] == 403


async def test_the_leave_to_ask_is_taken_back_within_the_time_that_keys_are_at_hand(
    registered: House,
) -> None:
    await devices.let_ask(registered.db, "esp32-1", True)
    assert (await ask_as(registered, "esp32-1", "/v1/jobs", JOB)).status == 202
    await devices.let_ask(registered.db, "esp32-1", False)
    await status_with(registered, b"wrong")  # a refusal looks it up anew, as FRESH_S does
    assert FRESH_S == 5
    assert (await ask_as(registered, "esp32-1", "/v1/jobs", JOB)).status == 403


async def test_refused_keys_open_an_alarm_for_the_device_or_one_for_all_unknown_names(
    open_house: Open,
) -> None:
    house = await open_house()
    await house.register("esp32-1")
    for device in ("esp32-1", "esp32-1", "nobody", "no-one"):
        assert await status_with(house, b"wrong", device) == 401
        await house.db.write(lambda _: None)  # the alarm's own transaction came before this one
    subjects = [row["subject"] for row in await alarms.list_open(house.db)]
    assert sorted(subjects) == ["esp32-1", "unknown"]
    assert "\nkeys_refused_total 4.0\n" in (await house.operator("/metrics")).text


async def test_the_operators_token_registers_renews_and_revokes(house: House) -> None:
    token = {"Authorization": f"Bearer {house.keys.operator_token}"} | JSON

    async def post(target: str, sent: Any = None) -> Answer:
        return await house.ask("POST", f"/v1/devices{target}", body(sent or {}), **token)

    added = [await post("", {"device": "esp32-1"}) for _ in range(2)]
    assert added[0].json == added[1].json
    assert added[0].json == {
        "device": "esp32-1", "generation": 1, "key": key(house, 1).hex(),
    }  # fmt: skip
    assert added[0].headers["Cache-Control"] == "no-store"
    assert (await post("/esp32-1/rotate")).json["key"] == key(house, 2).hex()
    assert (await post("/esp32-1/revoke")).json == {"device": "esp32-1"}
    for target in ("/esp32-1/revoke", "/esp32-1/rotate", "/%00/rotate", "/nobody/revoke"):
        assert problem_of(await post(target))["status"] == 404
    for wrong in ({"device": "a b"}, {"device": 1}, {}, {"device": "a", "more": 1}):
        assert problem_of(await post("", wrong))["status"] == 422


async def test_keys_are_given_to_nobody_in_open_mode(open_mode: House) -> None:
    answer = await open_mode.ask("POST", "/v1/devices", body({"device": "esp32-1"}), **JSON)
    assert problem_of(answer)["status"] == 403
    assert "operator.token" in problem_of(answer)["detail"]


@pytest.mark.parametrize(("peer", "statuses"), [("192.0.2.7", {401, 429}), ("127.0.0.1", {401})])
async def test_wrong_tokens_from_another_machine_are_looked_at_only_so_often(
    open_house: Open, peer: str, statuses: set[int]
) -> None:
    house = await open_house(peer=peer, allow_plain_bearer=True)
    right = await bearer_of(house)
    wrong = [
        await house.ask("GET", "/v1/status", Authorization=f"Bearer {n:064x}") for n in range(25)
    ]
    assert {answer.status for answer in wrong} == statuses
    assert [answer.status for answer in wrong[:20]] == [401] * 20
    answer = await house.ask("POST", "/v1/readings", body(batch("curl")), Authorization=right)
    assert answer.status == (429 if 429 in statuses else 200)
