"""Where jobs write files: in folders beside the database, while the disk has room."""

import shutil
from pathlib import Path
from typing import Any

from gateway.outcomes import Permanent, Snooze

_FREE_BYTES = 64 * 1024**2
_WAIT_S = 30


class Place:
    """A folder beside the database.

    Args:
        settings: `folder`, where the database stands, None in memory; `min_free_bytes`.
        name: of the folder, and of what is in it.
    """

    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self._name = name
        self._beside: str | None = settings.get("folder")
        self._floor_bytes: int = settings.get("min_free_bytes", _FREE_BYTES)

    def folder(self) -> Path:
        """Return it. Raises Permanent where there is none."""
        if self._beside is None:
            raise Permanent(
                f"a database in memory has no folder for {self._name}: start with --db PATH"
            )
        return Path(self._beside) / self._name

    def require_room(self) -> None:
        """Put the job off, by Snooze, while the disk is nearly full."""
        if shutil.disk_usage(self.folder().parent).free < self._floor_bytes:
            raise Snooze(_WAIT_S, "waits: the disk is nearly full")
