"""The keys of the devices, kept at hand so that a delivery need not ask the database."""

import time
from collections.abc import Awaitable, Callable

from gateway.keys import Keys

# How long a revoked or renewed key may go on being believed: another process may have done it.
FRESH_S = 5.0

_NO_GENERATION = 0  # real ones start at 1


class KeyRing:
    """Device name -> key, looked up again when it is missing, old or does not fit."""

    def __init__(
        self,
        keys: Keys,
        generation: Callable[[str], Awaitable[int | None]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._generation = generation
        self._monotonic = monotonic
        self._known: dict[str, tuple[bytes, float]] = {}
        self._decoy = keys.device_key("", _NO_GENERATION)

    async def verified(self, device: str, fits: Callable[[bytes], bool]) -> bytes | None:
        """Return the device's key if it fits; None if not, or if there is no such device.

        Both refusals do the same work (a trial, a look-up, a trial), so that the time of the
        answer tells nobody which names exist. It also sees at once that a key was made anew.
        """
        key, until = self._known.get(device, (self._decoy, 0.0))
        if fits(key) and self._monotonic() < until:
            return key
        return await self._looked_up(device, fits)

    async def _looked_up(self, device: str, fits: Callable[[bytes], bool]) -> bytes | None:
        generation = await self._generation(device)
        key = self._keys.device_key(device, generation or _NO_GENERATION)
        fitting = fits(key)
        if generation is None:
            self._known.pop(device, None)
            return None
        self._known[device] = (key, self._monotonic() + FRESH_S)
        return key if fitting else None
