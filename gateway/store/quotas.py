"""What is known of a device before its batch goes in."""

from gateway.store import queries
from gateway.store.database import Database

_sql = queries.load("quotas")


async def present(db: Database, device: str) -> tuple[str | None, int | None]:
    """Return boot and seq of the newest attempt that was heard of the device."""
    row = await db.one(_sql.present, {"device": device})
    return (None, None) if row is None else (row["boot"], row["seq"])


async def has_boot(db: Database, device: str, boot: str) -> bool:
    """Return whether the device was heard with this boot."""
    return await db.one(_sql.has_boot, {"device": device, "boot": boot}) is not None


async def devices(db: Database, device: str) -> tuple[bool, int]:
    """Return whether the device is known, and how many are."""
    row = await db.one(_sql.devices, {"device": device})
    assert row is not None
    return bool(row["is_known"]), row["count"]


async def sensors(db: Database, device: str) -> set[str]:
    """Return the names of the device's sensors."""
    return {row["name"] for row in await db.all(_sql.sensors, {"device": device})}
