"""The secrets that stand beside the database, each in a file of its own that only we can read."""

import hmac
import logging
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import Misconfigured

MASTER_KEY = "master.key"
OPERATOR_TOKEN = "operator.token"

_BYTES = 32
_HEX_DIGITS = 2 * _BYTES

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keys:
    """The master key, of which every device's key is made, and the operator's token."""

    master: bytes = field(repr=False)
    operator_token: str = field(repr=False)

    @classmethod
    def open(cls, folder: Path | None) -> "Keys":
        """Read both from `folder`, made when missing; None keeps them in memory only.

        Raises:
            Misconfigured: a file is there but can not be used; the message says what to do.
        """
        if folder is None:
            return cls(secrets.token_bytes(_BYTES), secrets.token_hex(_BYTES))
        master = bytes.fromhex(_secret(folder / MASTER_KEY))
        return cls(master, _secret(folder / OPERATOR_TOKEN))

    @property
    def known_by(self) -> str:
        """Return what tells this master key from others, and tells nothing of it."""
        return known_by(self.master)

    def device_key(self, device: str, generation: int) -> bytes:
        """Return the 32 bytes that sign for this device; those of other generations do not."""
        told = f"fieldpost-device-key-1\n{device}\n{generation}"
        return hmac.digest(self.master, told.encode(), "sha256")


def known_by(master: bytes) -> str:
    """Return 16 hex digits that tell a master key from others."""
    return hmac.digest(master, b"fieldpost-master-check-1", "sha256").hex()[:16]


def _secret(path: Path) -> str:
    """Return the 64 hex digits that the file holds."""
    try:
        if not path.exists():
            _make(path)
        found = path.read_text(encoding="ascii").strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} can not be read or made: {error}") from error
    if len(found) != _HEX_DIGITS or not set(found) <= set("0123456789abcdef"):
        raise Misconfigured(
            f"{path} does not hold {_HEX_DIGITS} hex digits: bring back the right file"
        )
    if mode & 0o077:
        log.warning("%s can be read by others: chmod 600 %s", path, path)
    return found


def _make(path: Path) -> None:
    """Make the file whole or not at all; of several processes that try, one does it.

    A crash must not leave half a key under the final name, so it is linked there when complete.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(opened, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        _sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
