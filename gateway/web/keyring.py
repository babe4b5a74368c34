"""The keys of the devices, kept at hand so that a delivery need not ask the database."""

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from gateway.errors import Unavailable
from gateway.keys import Keys
from gateway.store.devices import Identity

# How long a revoked or renewed key may go on being believed: another process may have done it.
FRESH_S = 5.0

_NO_GENERATION = 0  # real ones start at 1

Fits = Callable[[bytes], bool]


class _Known(NamedTuple):
    """What a device's signature may be made with. Always two keys, so that trying tells nothing."""

    keys: tuple[bytes, bytes]
    until_s: float
    identity: Identity


class KeyRing:
    """Device name -> its keys, looked up again when they are missing, old or do not fit.

    Args:
        look_up: returns how a device proves who it is, None for an unknown one.
        take_up: is told of the name and the generation when a key of a rotation is used first.
        monotonic: seconds.
    """

    def __init__(
        self,
        keys: Keys,
        look_up: Callable[[str], Awaitable[Identity | None]],
        take_up: Callable[[str, int], Awaitable[None]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._look_up = look_up
        self._take_up = take_up
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._decoy = keys.device_key("", _NO_GENERATION)
        self._nobody = _Known((self._decoy, self._decoy), 0.0, Identity(None, None, False))

    async def verified(self, device: str, fits: Fits) -> bytes | None:
        """Return the device's key that fits; None if none does, or if there is no such device.

        Both refusals do the same work (two trials, a look-up, two trials), so that the time of
        the answer tells nobody which names exist. It also sees at once that a key was made anew.
        """
        known = self._known.get(device, self._nobody)
        key = _fitting(known, fits)
        if key is None or self._monotonic() >= known.until_s:
            known = await self._looked_up(device)
            key = _fitting(known, fits)
        if key is None or known.identity.generation is None:
            return None
        if known.identity.next_generation is not None and key == known.keys[1]:
            await self._renew(device, known.identity)
        return key

    def may_ask(self, device: str) -> bool:
        """Return whether a device that was just verified may ask for jobs."""
        return self._known.get(device, self._nobody).identity.may_ask

    async def _looked_up(self, device: str) -> _Known:
        identity = await self._look_up(device)
        if identity is None or identity.generation is None:
            self._known.pop(device, None)
            self._keys.device_key(device, _NO_GENERATION)  # as much work as for one that is known
            return self._nobody
        return self._keep(device, identity)

    def _keep(self, device: str, identity: Identity) -> _Known:
        key = self._keys.device_key(device, identity.generation or _NO_GENERATION)
        other = self._decoy
        if identity.next_generation is not None:
            other = self._keys.device_key(device, identity.next_generation)
        known = _Known((key, other), self._monotonic() + FRESH_S, identity)
        self._known[device] = known
        return known

    async def _renew(self, device: str, identity: Identity) -> None:
        """Make the old key void, now that the board has the new one."""
        assert identity.next_generation is not None
        try:
            await self._take_up(device, identity.next_generation)
        except Unavailable:
            return  # both stay valid until a later use can be written down
        self._keep(device, Identity(identity.next_generation, None, identity.may_ask))


def _fitting(known: _Known, fits: Fits) -> bytes | None:
    """Return the key that fits; both are tried, whatever comes of the first."""
    first, other = (fits(key) for key in known.keys)
    if first:
        return known.keys[0]
    return known.keys[1] if other and known.identity.next_generation is not None else None
