"""Many look at the same: what one read of the database says is good for all who ask meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

_MOST_KEPT = 200


class Fresh:
    """Keeps answers for `good_for_s`. A page waits longer than that after it heard of a change, so
    that what it is given was read after it.

    Args:
        monotonic: a clock in seconds.
    """

    def __init__(self, good_for_s: float, monotonic: Callable[[], float]) -> None:
        self._good_for_s = good_for_s
        self._monotonic = monotonic
        self._kept: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `make` returned a moment ago, or call it; who asks meanwhile waits for it."""
        now = self._monotonic()
        made_at, answer = self._kept.get(key, (float("-inf"), None))
        if answer is None or now - made_at >= self._good_for_s:
            answer = asyncio.ensure_future(make())
            answer.add_done_callback(_heard)  # whoever asked may have gone away meanwhile
            self._kept = self._young(now)
            self._kept[key] = (now, answer)
        return await asyncio.shield(answer)  # others wait for it too

    def forget(self) -> None:
        """Let everything be read anew: something was just changed."""
        self._kept.clear()

    def _young(self, now: float) -> dict[Hashable, tuple[float, asyncio.Future[Any]]]:
        young = {k: v for k, v in self._kept.items() if now - v[0] < self._good_for_s}
        return dict(list(young.items())[-_MOST_KEPT:])


def _heard(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
