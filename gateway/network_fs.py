"""A database must not stand on a network file system: its locks lie, and a commit may not be there.

SQLite's WAL needs memory shared between processes, which no such file system gives
(https://www.sqlite.org/wal.html, "All processes using a database must be on the same host").
"""

import os
import re
from pathlib import Path

from gateway.errors import Misconfigured

MOUNTS = Path("/proc/mounts")
KINDS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "beegfs", "glusterfs"}
    | {"fuse." + kind for kind in ("sshfs", "rclone", "s3fs", "gcsfuse", "glusterfs", "ceph")}
)

_ESCAPED = re.compile(r"\\([0-7]{3})")


def refuse(path: str | os.PathLike[str], mounts: str | None = None) -> None:
    """Check that the file, there or not yet, stands on a disk of this machine.

    Args:
        mounts: text in the form of /proc/mounts; this machine's own when None. Where there is no
            such file (macOS, Windows) nothing is known, and nothing is refused.

    Raises:
        Misconfigured: it stands on a network file system.
    """
    found = kind(os.path.realpath(path), _read() if mounts is None else mounts)
    if found in KINDS:
        raise Misconfigured(
            f"database {path} is on a network file system ({found}), where SQLite loses data;"
            " choose a folder on a disk of this machine with --db"
        )


def kind(path: str, mounts: str) -> str | None:
    """Return the type of the file system that holds an absolute path, or None."""
    best: tuple[str, str | None] = ("", None)
    for line in mounts.splitlines():
        _device, raw_point, found, *_ = line.split()
        point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), raw_point)
        # Mounts hide what was mounted there before them, so the last of equals wins.
        if os.path.commonpath([point, path]) == point and len(point) >= len(best[0]):
            best = (point, found)
    return best[1]


def _read() -> str:
    return MOUNTS.read_text(errors="surrogateescape") if MOUNTS.exists() else ""
