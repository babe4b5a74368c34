"""The one door for readings, over a real database file."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Rejected
from gateway.ingest import Ingest
from gateway.model import Verdicts
from gateway.store.database import Database

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "verdicts.json").read_text())
NOW_MS = 1_764_529_200_000
BOOT = "7f3a17c212"


class Door:
    """An Ingest and its database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.ingest = Ingest(database)

    async def send(self, *readings: dict[str, Any], at_ms: int = NOW_MS, **parts: Any) -> Verdicts:
        body = {"device": "d", "readings": readings, **parts}
        return await self.raw(json.dumps(body).encode(), at_ms)

    async def raw(self, body: bytes, at_ms: int = NOW_MS, device: str | None = None) -> Verdicts:
        return await self.ingest.deliver(body, device=device, received_ms=at_ms)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.database.all(sql)]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    database = await Database.open(str(tmp_path / "fieldpost.db"))
    yield Door(database)
    await database.close()


def reading(n: int, value: object = 1.5, boot: str = BOOT, **more: object) -> dict[str, object]:
    return {"id": f"d-{boot}-{n}", "sensor": "s", "value": value, **more}


def counts(verdicts: Verdicts) -> tuple[int, int, int]:
    return verdicts.stored, verdicts.duplicates, len(verdicts.rejected)


def body_of(case: dict[str, Any]) -> bytes:
    if "body_hex" in case:
        return bytes.fromhex(case["body_hex"])
    return "".join(text * times for text, times in case["body"]).encode()


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
async def test_every_reading_gets_the_verdict_of_the_vectors(
    door: Door, case: dict[str, Any]
) -> None:
    if case["status"] != 200:
        with pytest.raises(Rejected) as refused:
            await door.raw(body_of(case))
        assert refused.value.status == case["status"]
        assert await door.rows("SELECT * FROM device") == []
        return
    verdicts = await door.raw(body_of(case))
    rejected = [{"index": r.index, "id": r.id, "reason": r.reason} for r in verdicts.rejected]
    assert (verdicts.stored, verdicts.duplicates) == (case["stored"], case["duplicates"])
    assert rejected == case["rejected"]
    assert await door.rows("SELECT count(*) FROM readings") == [(case["stored"],)]
    assert await door.rows("SELECT count(*) FROM quarantine") == [(len(rejected),)]
    assert await door.rows("SELECT ignored FROM device") == [(case.get("ignored", 0),)]


async def test_the_same_batch_again_is_duplicates(door: Door) -> None:
    batch = [reading(1), reading(2, True), reading(3, "x")]
    assert counts(await door.send(*batch)) == (2, 0, 1)
    assert counts(await door.send(*batch)) == (0, 2, 1)
    assert await door.rows("SELECT reading_id, value FROM readings ORDER BY n") == [
        (f"d-{BOOT}-1", 1.5),
        (f"d-{BOOT}-2", 1.0),
    ]
    assert await door.rows("SELECT count(*) FROM quarantine") == [(1,)]


async def test_the_same_batch_twice_at_once_is_stored_once(door: Door) -> None:
    batch = [reading(n) for n in range(1, 65)]
    answers = await asyncio.gather(*(door.send(*batch) for _ in range(8)))
    assert sorted(counts(answer) for answer in answers) == [(0, 64, 0)] * 7 + [(64, 0, 0)]


async def test_another_content_under_a_used_id_is_kept_in_quarantine(door: Door) -> None:
    await door.send(reading(1, 21.5, unit="Cel"))
    for other in (
        reading(1, 21.6, unit="Cel"),
        reading(1, 21.5, unit="K"),
        reading(1, 21.5),
        reading(1, None, unit="Cel", error="no answer"),
        {**reading(1, 21.5, unit="Cel"), "sensor": "t"},
    ):
        verdicts = await door.send(other)
        assert counts(verdicts) == (0, 0, 1)
        assert verdicts.rejected[0].reason == "id was used before for another reading"
    assert await door.rows("SELECT value, unit FROM readings") == [(21.5, "Cel")]
    assert await door.rows("SELECT count(*), min(reading_id) FROM quarantine") == [
        (5, f"d-{BOOT}-1")
    ]


async def test_times_are_no_part_of_the_content_and_the_first_one_stays(door: Door) -> None:
    first = reading(1, boot=BOOT, up_ms=1000) | {"boot": BOOT}
    assert counts(await door.send(first, boot=BOOT, up_ms=3000)) == (1, 0, 0)
    later = reading(1, at_ms=NOW_MS + 60_000)
    assert counts(await door.send(later, sent_ms=NOW_MS + 60_500, at_ms=NOW_MS + 60_500)) == (
        0, 1, 0,
    )  # fmt: skip
    assert await door.rows("SELECT at_ms, clock FROM readings") == [(NOW_MS - 2000, "estimated")]


async def test_an_id_of_another_device_outside_the_grammar_is_a_conflict(door: Door) -> None:
    body = b'{"device":"%s","readings":[{"id":"x1","sensor":"s","value":1}]}'
    assert counts(await door.raw(body % b"a")) == (1, 0, 0)
    assert counts(await door.raw(body % b"a")) == (0, 1, 0)
    assert counts(await door.raw(body % b"b")) == (0, 0, 1)


async def test_a_device_speaks_for_itself_alone(door: Door) -> None:
    with pytest.raises(Rejected) as refused:
        await door.raw(b'{"device":"b","readings":[]}', device="a")
    assert refused.value.status == 403


async def test_gaps_are_kept_with_the_readings(door: Door) -> None:
    missing = "SELECT first, last FROM gap ORDER BY first"
    await door.send(reading(1), reading(5))
    assert await door.rows(missing) == [(2, 4)]
    await door.send(reading(3))
    assert await door.rows(missing) == [(2, 2), (4, 4)]
    await door.send(reading(4, "not a number"))  # in quarantine, but here
    assert await door.rows(missing) == [(2, 2)]
    await door.send(lost=[{"boot": BOOT, "from": 2, "to": 2}])
    assert await door.rows(missing) == []
    await door.send(reading(2))
    assert await door.rows("SELECT count(*) FROM readings") == [(4,)]
    assert await door.rows("SELECT highest FROM boot") == [(5,)]


async def test_what_retention_took_away_is_not_let_in_again(door: Door) -> None:
    await door.send(*(reading(n) for n in (1, 2, 3, 5)))

    def prune(connection: Any) -> None:
        connection.execute("DELETE FROM reading WHERE n <= 3")
        connection.execute("UPDATE boot SET pruned_to = 3")
        connection.execute("INSERT INTO pruned (boot_id, first, last) SELECT id, 1, 3 FROM boot")

    await door.database.write(prune)
    again = [reading(n) for n in range(1, 6)]
    assert counts(await door.send(*again)) == (1, 4, 0)
    assert await door.rows("SELECT n FROM readings ORDER BY n") == [(4,), (5,)]


async def test_the_newest_attempt_says_how_the_device_is(door: Door) -> None:
    state = "SELECT last_seen_at_ms, boot, seq, health FROM device"

    async def heard(at_ms: int, boot: str, seq: int, outbox: int) -> tuple[Any, ...]:
        await door.send(at_ms=at_ms, boot=boot, seq=seq, health={"outbox": outbox})
        seen, present, newest, health = (await door.rows(state))[0]
        return seen, present, newest, json.loads(health)["outbox"]

    first, second = BOOT, "7f3a17c213"
    assert await heard(1000, first, 1, 7) == (1000, first, 1, 7)
    assert await heard(2000, first, 2, 8) == (2000, first, 2, 8)
    assert await heard(3000, first, 1, 9) == (2000, first, 2, 8)  # a replay
    assert await heard(4000, second, 1, 10) == (4000, second, 1, 10)
    assert await heard(5000, first, 3, 11) == (4000, second, 1, 10)  # an earlier boot


async def test_a_client_without_boots_is_seen_when_it_brings_something_new(door: Door) -> None:
    seen = "SELECT last_seen_at_ms FROM device"
    sent = {"id": "curl-1", "sensor": "s", "value": 1}
    await door.send(sent, at_ms=1000)
    await door.send(sent, at_ms=2000)
    assert await door.rows(seen) == [(1000,)]
    await door.send({**sent, "id": "curl-2"}, at_ms=3000)
    assert await door.rows(seen) == [(3000,)]


async def test_a_crash_stays_readable_after_the_next_attempt(door: Door) -> None:
    await door.send(boot=BOOT, seq=1, health={"crash": "OSError: 28"})
    await door.send(boot=BOOT, seq=2, health={"crash": None})
    assert await door.rows("SELECT crash, crash_at_ms FROM device") == [("OSError: 28", NOW_MS)]


async def test_a_replay_that_shares_the_transaction_of_a_newer_attempt_changes_nothing(
    door: Door,
) -> None:
    await door.send(boot=BOOT, seq=1, health={"outbox": 1})
    await asyncio.gather(
        door.send(reading(1), boot=BOOT, seq=3, health={"outbox": 3}, at_ms=NOW_MS + 3),
        door.send(reading(1), boot=BOOT, seq=2, health={"outbox": 2}, at_ms=NOW_MS + 9),
    )
    state = "SELECT last_seen_at_ms, seq, health, duplicates FROM device"
    assert await door.rows(state) == [(NOW_MS + 3, 3, '{"outbox":3}', 0)]


async def test_a_resent_batch_is_counted_as_duplicates_and_a_replayed_one_is_not(
    door: Door,
) -> None:
    for seq, duplicates in ((1, 0), (2, 1), (2, 1), (1, 1)):
        await door.send(reading(1), boot=BOOT, seq=seq)
        assert await door.rows("SELECT duplicates FROM device") == [(duplicates,)]


async def test_what_arrived_is_not_lost_whatever_the_device_says(door: Door) -> None:
    lost = "SELECT first, last FROM lost ORDER BY first"
    await door.send(reading(1), reading(2), reading(5))
    await door.send(lost=[{"boot": BOOT, "from": 1, "to": 9}])
    assert await door.rows(lost) == [(3, 4), (6, 9)]
    assert await door.rows("SELECT count(*) FROM gap") == [(0,)]
    await door.send(reading(6), reading(3))
    assert await door.rows(lost) == [(4, 4), (7, 9)]


async def test_sensors_of_a_rolled_back_delivery_are_not_remembered(door: Door) -> None:
    def fail(connection: Any) -> None:
        raise ValueError("the neighbour in the group fails")

    first, failed = await asyncio.gather(
        door.send(reading(1)), door.database.write(fail), return_exceptions=True
    )
    assert isinstance(failed, ValueError)
    assert isinstance(first, Verdicts)
    assert counts(await door.send(reading(2))) == (1, 0, 0)
    assert await door.rows("SELECT sensor FROM readings") == [("s",), ("s",)]


async def test_everything_is_there_after_a_restart(door: Door, tmp_path: Path) -> None:
    await door.send(reading(1), reading(2))
    await door.database.close()
    again = Door(await Database.open(str(tmp_path / "fieldpost.db")))
    assert counts(await again.send(reading(1), reading(2), reading(3))) == (1, 2, 0)
    await again.database.close()
