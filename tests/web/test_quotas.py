"""How much one device may deliver, and how many may come unasked. Nobody loses a reading by it."""

import secrets
from typing import Any

from tests.web.conftest import Open
from tests.web.house import BOOT, Answer, House, batch, body, problem_of, sign

JSON = {"Content_Type": "application/json"}


async def deliver(house: House, seq: int, *, boot: str = f"{BOOT}1", count: int = 0) -> Answer:
    return await house.signed("esp32-1", body(batch(count=count, boot=boot, seq=seq)))


async def test_a_device_beyond_its_deliveries_is_told_when_to_come_again(open_house: Open) -> None:
    house = await open_house(requests_per_minute=3)
    await house.register("esp32-1")
    await house.register("esp32-2")
    statuses = [(await deliver(house, seq)).status for seq in (1, 2, 3, 4)]
    assert statuses == [200, 200, 200, 429]
    answer = await deliver(house, 5)  # its signature was checked when it came
    assert problem_of(answer)["status"] == 429
    assert 15 <= int(answer.headers["Retry-After"]) <= 20
    assert (await house.signed("esp32-2", body(batch("esp32-2", 0)))).status == 200


async def test_a_device_beyond_its_readings_is_told_when_to_come_again(open_house: Open) -> None:
    house = await open_house(readings_per_minute=10)
    await house.register("esp32-1")
    statuses = [(await deliver(house, seq, count=4)).status for seq in (1, 2, 3)]
    assert statuses == [200, 200, 429]
    assert (await deliver(house, 4, count=1)).status == 200
    assert (await house.operator("/v1/devices")).json["devices"][0]["readings"]["stored"] == 4


async def test_a_replay_gets_its_verdict_and_takes_nothing(open_house: Open) -> None:
    house = await open_house(requests_per_minute=3)
    key = await house.register("esp32-1")
    sent = body(batch(boot=f"{BOOT}1", seq=1))
    made = sign(key, "esp32-1", secrets.token_hex(16), "POST", "/v1/readings", sent)
    for duplicates in (0, 1, 1, 1, 1, 1):
        answer = await house.ask("POST", "/v1/readings", sent, Authorization=made)
        assert (answer.status, answer.json["duplicates"]) == (200, duplicates)
    assert [(await deliver(house, seq)).status for seq in (2, 3, 4)] == [200, 200, 429]
    answer = await house.ask("POST", "/v1/readings", sent, Authorization=made)
    assert answer.status == 200


async def test_a_replay_of_an_earlier_boot_takes_nothing_either(open_house: Open) -> None:
    house = await open_house(requests_per_minute=3)
    await house.register("esp32-1")
    assert (await deliver(house, 1, boot=f"{BOOT}1")).status == 200
    assert (await deliver(house, 1, boot=f"{BOOT}2")).status == 200
    for seq in (1, 2, 3, 4):
        assert (await deliver(house, seq, boot=f"{BOOT}1")).status == 200
    assert [(await deliver(house, seq, boot=f"{BOOT}2")).status for seq in (2, 3)] == [200, 429]


async def test_a_malformed_seq_is_no_way_around_the_limit(open_house: Open) -> None:
    house = await open_house(requests_per_minute=2)
    await house.register("esp32-1")
    odd: list[Any] = ["1", None, True, [], -1.5]
    statuses = [
        (await house.signed("esp32-1", body(batch(count=0, boot=7, seq=seq)))).status for seq in odd
    ]
    assert statuses == [200, 200, 429, 429, 429]


async def test_a_limit_of_nothing_is_no_limit(open_house: Open) -> None:
    house = await open_house(requests_per_minute=0, readings_per_minute=0)
    await house.register("esp32-1")
    assert {(await deliver(house, seq)).status for seq in range(1, 30)} == {200}


async def test_beyond_the_cap_only_those_come_in_that_somebody_registered(open_house: Open) -> None:
    house = await open_house(open=True, max_devices=2)

    async def send(device: str) -> Answer:
        return await house.ask("POST", "/v1/readings", body(batch(device)), **JSON)

    assert [(await send(name)).status for name in ("a", "b", "c", "a")] == [200, 200, 403, 200]
    assert "max_devices" in problem_of(await send("c"))["detail"]
    await house.register("c")
    assert [(await send(name)).status for name in ("c", "d")] == [200, 403]
    assert len((await house.ask("GET", "/v1/devices")).json["devices"]) == 3


async def test_what_is_refused_for_another_reason_takes_up_no_place(open_house: Open) -> None:
    house = await open_house(open=True, max_devices=1)
    for wrong in ({"device": "a b", "readings": []}, {"device": "a", "readings": 1}):
        assert (await house.ask("POST", "/v1/readings", body(wrong), **JSON)).status == 422
    assert (await house.ask("POST", "/v1/readings", body(batch("b")), **JSON)).status == 200
