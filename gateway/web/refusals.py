"""Keys and tokens that were refused: counted, and told of without telling the caller anything."""

import logging
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter

log = logging.getLogger(__name__)

_LOG_EVERY_S = 10.0


class Refusals:
    """Counts what was refused. Telling of it must neither wait nor fail.

    Args:
        tell: is given the name that a signature claimed, None for a token or what has no form.
        registry: in which `keys_refused_total` is put.
        monotonic: seconds.
    """

    def __init__(
        self,
        tell: Callable[[str | None], None],
        registry: CollectorRegistry,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._counter = Counter("keys_refused", "Keys and tokens refused.", registry=registry)
        self._monotonic = monotonic
        self._logged_at_s: float | None = None
        self.total = 0

    def add(self, device: str | None) -> None:
        """Count one; the log hears of it now and then, so that nobody can fill it from outside."""
        self.total += 1
        self._counter.inc()
        now_s = self._monotonic()
        if self._logged_at_s is None or now_s >= self._logged_at_s + _LOG_EVERY_S:
            self._logged_at_s = now_s
            log.warning("key refused: %s (%d since the start)", device or "a token", self.total)
        self._tell(device)
