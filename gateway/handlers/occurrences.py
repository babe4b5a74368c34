"""Counts how often something was seen, in a file and not in memory, however much there is."""

import sqlite3
from pathlib import Path
from types import TracebackType

# Nothing of it outlives the process, so nothing of it need be safe on the disk.
_SET_UP = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA cache_size = -8192",
    "CREATE TABLE seen (key BLOB PRIMARY KEY, times INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "BEGIN",
)
_COUNT = """
INSERT INTO seen (key, times) VALUES (?, 1)
ON CONFLICT (key) DO UPDATE SET times = times + 1
RETURNING times
"""


class Occurrences:
    """The counts. `path` is overwritten, and removed in the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.unlink(missing_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in _SET_UP:
            self._connection.execute(statement)

    def count(self, key: bytes) -> int:
        """Return how often this one was seen, with this time."""
        times: int = self._connection.execute(_COUNT, (key,)).fetchone()[0]
        return times

    def __enter__(self) -> "Occurrences":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        self._path.unlink(missing_ok=True)
