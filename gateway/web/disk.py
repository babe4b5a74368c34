"""The floor of free disk space: below it readings are put off, so that nothing else breaks."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from gateway.errors import Unavailable

_LOOK_EVERY_S = 1.0
_RETRY_AFTER_S = 30


class Disk:
    """Says whether there is room. Looks at most once a second, so it can be asked each time."""

    def __init__(
        self,
        folder: Path | None,
        floor_bytes: int,
        free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._floor_bytes = floor_bytes
        self._free_bytes = free_bytes
        self._monotonic = monotonic
        self._looked_at = float("-inf")
        self._is_low = False

    def require_room(self) -> None:
        """Raise Unavailable while less than the floor is free. In memory there is always room."""
        if self._folder is None:
            return
        now = self._monotonic()
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            self._is_low = self._free(self._folder) < self._floor_bytes
        if self._is_low:
            raise Unavailable(
                f"the gateway's disk has less than {self._floor_bytes // 1024**2} MiB free",
                retry_after_s=_RETRY_AFTER_S,
            )

    def _free(self, folder: Path) -> int:
        try:
            return self._free_bytes(folder)
        except OSError as error:
            raise Unavailable(f"the gateway's disk can not be looked at: {error}") from error
