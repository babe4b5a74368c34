"""The keys at hand: how long they are believed, and that a refusal tells nothing."""

from gateway.keys import Keys
from gateway.web.keyring import FRESH_S, KeyRing

KEYS = Keys(bytes(32), "token")


class Roster:
    """Who has a key, a clock, and how often each was asked."""

    def __init__(self) -> None:
        self.generations: dict[str, int] = {"esp32-1": 1}
        self.now_s = 0.0
        self.asked: list[str] = []
        self.tried: list[bytes] = []
        self.ring = KeyRing(KEYS, self._generation, lambda: self.now_s)

    async def _generation(self, device: str) -> int | None:
        self.asked.append(device)
        return self.generations.get(device)

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
    del roster.generations["esp32-1"]
    roster.now_s = FRESH_S
    assert await roster.verified("esp32-1", key) is None
    assert await roster.verified("esp32-1", key) is None


async def test_a_look_up_that_finds_the_key_revoked_ends_it_at_once() -> None:
    roster, key = Roster(), KEYS.device_key("esp32-1", 1)
    await roster.verified("esp32-1", key)
    del roster.generations["esp32-1"]
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
    assert work == [(1, 2), (1, 2)]


async def test_no_key_speaks_for_a_device_that_is_not_known() -> None:
    roster = Roster()
    for forged in (KEYS.device_key("", 0), KEYS.device_key("nobody", 0)):
        assert await roster.verified("nobody", forged) is None
