"""Invented forgeries and replays: no forgery is believed, and no replay changes a thing.

What of an answer a board believes is in tests/device/test_forged_answers.py.
"""

import re
import secrets
from itertools import count
from typing import Any, NamedTuple

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.web.conftest import Open
from tests.web.house import BOOT, Answer, House, batch, body, sign

FEW = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
TARGET = "/v1/readings"
WHAT_A_REPLAY_LEAVES = """
    SELECT
        d.last_seen_at_ms, d.boot, d.seq, d.health, d.crash, d.stored, d.duplicates, d.quarantined,
        d.ignored, d.generation, d.next_generation,
        (SELECT json_group_array(json_array(b.name, b.highest, g.first, g.last))
         FROM boot AS b LEFT JOIN gap AS g ON g.boot_id = b.id WHERE b.device_id = d.id) AS gaps
    FROM device AS d WHERE d.name = :device
"""
_names = count(1)


class Sent(NamedTuple):
    """A signed request as it went over the wire."""

    method: str
    target: str
    authorization: str
    body: bytes


def signed(house: House, device: str, sent: Any, generation: int = 1) -> Sent:
    told = body(sent)
    key, nonce = house.keys.device_key(device, generation), secrets.token_hex(16)
    return Sent("POST", TARGET, sign(key, device, nonce, "POST", TARGET, told), told)


async def send(house: House, one: Sent) -> Answer:
    return await house.ask(one.method, one.target, one.body, Authorization=one.authorization)


async def state(house: House, device: str) -> tuple[Any, ...]:
    row = await house.db.one(WHAT_A_REPLAY_LEAVES, {"device": device})
    assert row is not None
    return tuple(row)


@st.composite
def forgeries(draw: st.DrawFn) -> Any:
    """Draw what turns two requests that were signed into one that nobody signed."""
    how = draw(st.sampled_from(["flip", "cut", "add", "swap", "word", "target", "other body"]))
    at, bit = draw(st.integers(0, 10_000)), draw(st.integers(0, 7))
    word = draw(st.sampled_from(["device", "nonce", "signature"]))
    text = draw(st.text("0123456789abcdef.-_Z", min_size=1, max_size=70))

    def forge(one: Sent, other: Sent) -> Sent:
        place = at % len(one.body)
        if how == "flip":
            flipped = bytearray(one.body)
            flipped[place] ^= 1 << bit
            return one._replace(body=bytes(flipped))
        if how == "cut":
            return one._replace(body=one.body[:place])
        if how == "add":
            return one._replace(body=one.body[:place] + text.encode() + one.body[place:])
        if how == "swap":  # each of the two was signed, but not so
            return one._replace(authorization=other.authorization)
        if how == "other body":
            return one._replace(body=other.body)
        if how == "word":
            changed = re.sub(f'({word}=")[^"]*', rf"\g<1>{text}", one.authorization)
            return one._replace(authorization=changed)
        return one._replace(target=f"{one.target}?{text}")

    return forge


@FEW
@given(forge=forgeries())
async def test_what_nobody_signed_is_never_accepted_and_leaves_nothing(
    registered: House, forge: Any
) -> None:
    house = registered
    first, second = (signed(house, "esp32-1", batch(first=n, boot=f"{BOOT}1")) for n in (1, 2))
    forged = forge(first, second)
    assume(forged != first)
    answer = await send(house, forged)
    assert answer.status == 401
    assert "Fieldpost-Signature" not in answer.headers
    assert (await house.db.all("SELECT 1 FROM reading UNION ALL SELECT 1 FROM quarantine")) == []
    assert (await state(house, "esp32-1"))[0] is None


@FEW
@given(
    batches=st.lists(
        st.tuples(st.sampled_from(["1", "2"]), st.integers(1, 30), st.integers(0, 3)),
        min_size=1,
        max_size=4,
    ),
    replays=st.lists(st.integers(0, 3), min_size=1, max_size=6),
)
async def test_a_replay_gets_its_verdicts_and_changes_nothing_else(
    open_house: Open, batches: Any, replays: list[int]
) -> None:
    house = await _metered(open_house)
    device = f"esp32-{next(_names)}"
    await house.register(device)
    heard = [
        signed(
            house,
            device,
            batch(device, readings, first, boot=f"{BOOT}{boot}", seq=seq, health={"rssi": -seq}),
        )
        for seq, (boot, first, readings) in enumerate(batches, start=1)
    ]
    for one in heard:
        house.now_ms[0] += 1000
        assert (await send(house, one)).status == 200
    before = await state(house, device)
    for place in replays:
        house.now_ms[0] += 1000
        one = heard[place % len(heard)]
        answer = await send(house, one)
        assert answer.status == 200
        told = answer.json
        assert (told["stored"], told["rejected"]) == (0, [])
        assert await state(house, device) == before
    # Of a minute's six deliveries the replays took none.
    fresh = [_fresh(house, device, seq) for seq in range(1, 8 - _counted(batches))]
    statuses = [(await send(house, one)).status for one in fresh]
    assert statuses == [200] * (len(fresh) - 1) + [429]


_houses: dict[int, House] = {}


async def _metered(open_house: Open) -> House:
    """Return the one gateway of all examples, where six deliveries a minute may be made."""
    if id(open_house) not in _houses:
        _houses.clear()
        _houses[id(open_house)] = await open_house(requests_per_minute=6)
    return _houses[id(open_house)]


def _counted(batches: Any) -> int:
    """Return how many of these were news: one of a boot that was left before is a replay."""
    known: set[str] = set()
    news, present = 0, None
    for boot, _, _ in batches:
        if boot == present or boot not in known:
            news, present = news + 1, boot
        known.add(boot)
    return news


def _fresh(house: House, device: str, seq: int) -> Sent:
    return signed(house, device, batch(device, 0, boot=f"{BOOT}9", seq=seq))
