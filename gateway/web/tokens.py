"""What is brought as it is and not signed with: tokens of clients, cookies of browsers.

Of both only hashes are kept, and those that were found are kept at hand for as long as the keys.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.store.sessions import hashed
from gateway.web.keyring import FRESH_S

MOST_KNOWN = 1024

T = TypeVar("T")


class Tokens(Generic[T]):
    """Secret -> whose it is, looked up again when it is missing or old.

    Args:
        look_up: returns whose the secret is, None if it is nobody's.
        monotonic: seconds.
    """

    def __init__(
        self,
        look_up: Callable[[str], Awaitable[T | None]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up = look_up
        self._monotonic = monotonic
        self._known: dict[str, tuple[T, float]] = {}

    async def whose(self, secret: str) -> T | None:
        """Return whose it is. A wrong one costs a hash and a look-up, whatever it is."""
        sha256 = hashed(secret)
        known = self._known.get(sha256)
        if known is not None and self._monotonic() < known[1]:
            return known[0]
        self._known.pop(sha256, None)
        found = await self._look_up(secret)
        if found is not None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[sha256] = (found, self._monotonic() + FRESH_S)
        return found

    def forget(self, secret: str) -> None:
        """Look this one up the next time; it was just made void."""
        self._known.pop(hashed(secret), None)
