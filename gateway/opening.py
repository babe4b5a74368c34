"""Opens the database that the configuration names, for whoever needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway import network_fs
from gateway.config import Config
from gateway.store.database import Database


@asynccontextmanager
async def database(config: Config) -> AsyncIterator[Database]:
    """Open the database, made when missing; close it on the way out.

    Raises:
        Misconfigured: it is not ours, too new, or in a place where it can not be.
    """
    if config.folder is not None:
        network_fs.refuse(config.db)
    db = await Database.open(config.db)
    try:
        yield db
    finally:
        await db.close()
