"""The master key and the database belong together: devices' keys are made of the one, and which
have been made stands in the other.
"""

import time

from gateway.config import Config
from gateway.errors import Misconfigured
from gateway.keys import MASTER_KEY, Keys
from gateway.store import devices, facts
from gateway.store.database import Database
from gateway.store.facts import Fact

_FOR_GOOD = (
    "If it is gone for good, `python -m gateway accept-key` takes the one that stands there, or"
    " makes one; then give every board the key that `devices add` prints"
)


async def keys_of(config: Config, database: Database) -> Keys:
    """Return the keys that stand beside the database, made when missing and never needed before.

    Raises:
        Misconfigured: the master key is missing, or another than devices' keys were made of; or
            see `Keys.open`.
    """
    registered = await devices.count_keyed(database)
    if config.folder is not None and registered and not (config.folder / MASTER_KEY).exists():
        raise Misconfigured(
            f"{config.folder / MASTER_KEY} is missing, and the keys of {registered} devices are"
            f" made of it: bring it back. {_FOR_GOOD}"
        )
    keys = Keys.open(config.folder)
    known = await facts.get(database, facts.MASTER_KEY)
    if known is None or (known.value != keys.known_by and not registered):
        await accept(database, keys)
    elif known.value != keys.known_by:
        raise Misconfigured(
            f"{config.folder and config.folder / MASTER_KEY} is not the key that the keys of"
            f" {registered} devices are made of: bring that back. {_FOR_GOOD}"
        )
    return keys


async def accept(database: Database, keys: Keys) -> None:
    """Take this master key for the one that devices' keys are made of from now on."""
    fact = Fact(keys.known_by, time.time_ns() // 1_000_000)
    await database.write(lambda c: facts.put(c, facts.MASTER_KEY, fact))
