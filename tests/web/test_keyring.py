"""The keys at hand: how long they are believed, and that a refusal tells nothing."""

from gateway.errors import Unavailable
from gateway.keys import Keys
from gateway.store.devices import Identity
from gateway.web.keyring import FRESH_S, KeyRing

KEYS = Keys(bytes(32), "token")


class Roster:
    """Who has a key, a clock, and how often each was asked."""

    def __init__(self) -> None:
        self.identities: dict[str, Identity] = {"esp32-1": Identity(1, None, False)}
        self.taken_up: list[tuple[str, int]] = []
        self.is_full = False
        self.now_s = 0.0
        self.asked: list[str] = []
        self.tried: list[bytes] = []
        self.ring = KeyRing(KEYS, self._look_up, self._take_up, lambda: self.now_s)

    async def _look_up(self, device: str) -> Identity | None:
        self.asked.append(device)
        return self.identities.get(device)

    async def _take_up(self, device: str, generation: int) -> None:
        if self.is_full:
            raise Unavailable("full")
        self.taken_up.append((device, generation))
        self.identities[device] = Identity(generation, None, False)

    async def verified(self, device: str, right: bytes) -> bytes | None:
        def fits(key: bytes) -> bool:
            self.tried.append(key)
            return key == right

        return await self.ring.verified(device, fits)


async def test_a_key_that_fits_is_looked_up_once() -> None:
    roster, key = Roster(), KEYS.device_key("esp32-1", 1)
    for _ in range(3):
        assert await roster.verified("esp32-1", key) == key
    assert roster.asked == ["esp32-1"]


async def test_a_revoked_key_is_believed_a_few_seconds_and_no_longer() -> None:
    roster, key = Roster(), KEYS.device_key("esp32-1", 1)
    await roster.verified("esp32-1", key)
    del roster.identities["esp32-1"]
    roster.now_s = FRESH_S
    assert await roster.verified("esp32-1", key) is None
    assert await roster.verified("esp32-1", key) is None


async def test_a_look_up_that_finds_the_key_revoked_ends_it_at_once() -> None:
    roster, key = Roster(), KEYS.device_key("esp32-1", 1)
    await roster.verified("esp32-1", key)
    del roster.identities["esp32-1"]
    assert await roster.verified("esp32-1", b"wrong") is None
    assert await roster.verified("esp32-1", key) is None


async def test_a_refusal_does_the_same_work_whether_or_not_the_device_exists() -> None:
    work = []
    for device in ("esp32-1", "nobody"):
        roster = Roster()
        if device == "esp32-1":
            await roster.verified(device, KEYS.device_key(device, 1))
        roster.asked.clear()
        roster.tried.clear()
        assert await roster.verified(device, b"wrong") is None
        work.append((len(roster.asked), len(roster.tried)))
    assert work == [(1, 4), (1, 4)]


async def test_no_key_speaks_for_a_device_that_is_not_known() -> None:
    roster = Roster()
    for forged in (KEYS.device_key("", 0), KEYS.device_key("nobody", 0)):
        assert await roster.verified("nobody", forged) is None


async def test_old_and_new_key_are_valid_until_the_new_one_is_used() -> None:
    roster = Roster()
    old, new = (KEYS.device_key("esp32-1", generation) for generation in (1, 2))
    roster.identities["esp32-1"] = Identity(1, 2, False)
    for _ in range(2):
        assert await roster.verified("esp32-1", old) == old
    assert roster.taken_up == []
    assert await roster.verified("esp32-1", new) == new
    assert roster.taken_up == [("esp32-1", 2)]
    assert await roster.verified("esp32-1", old) is None
    assert await roster.verified("esp32-1", new) == new
    assert roster.taken_up == [("esp32-1", 2)]


async def test_a_use_that_can_not_be_written_down_leaves_both_keys_valid() -> None:
    roster = Roster()
    old, new = (KEYS.device_key("esp32-1", generation) for generation in (1, 2))
    roster.identities["esp32-1"] = Identity(1, 2, False)
    roster.is_full = True
    assert await roster.verified("esp32-1", new) == new
    assert await roster.verified("esp32-1", old) == old
    roster.is_full = False
    assert await roster.verified("esp32-1", new) == new
    assert await roster.verified("esp32-1", old) is None


async def test_another_process_that_saw_the_new_key_used_ends_the_old_one_here() -> None:
    roster = Roster()
    old = KEYS.device_key("esp32-1", 1)
    roster.identities["esp32-1"] = Identity(1, 2, False)
    assert await roster.verified("esp32-1", old) == old
    roster.identities["esp32-1"] = Identity(2, None, False)  # by the other process
    assert await roster.verified("esp32-1", old) == old
    roster.now_s = FRESH_S
    assert await roster.verified("esp32-1", old) is None


async def test_the_key_that_stands_in_for_a_second_one_opens_nothing() -> None:
    roster = Roster()
    assert await roster.verified("esp32-1", KEYS.device_key("", 0)) is None
