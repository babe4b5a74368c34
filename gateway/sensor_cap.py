"""How many sensors one device may make appear. A reading of one more gets a verdict of its own.

It is kept in quarantine, as every rejected one is, and `reprocess_readings` brings it in when a
person has raised the limit. To refuse the whole batch instead would hold up the readings of the
sensors that are well, until the device's outbox is full and the oldest of those are gone.
"""

from gateway.model import Batch, Item, Refusal
from gateway.store import quotas
from gateway.store.database import Database

REASON = "device has too many sensors"

_MOST_DEVICES = 4096  # whose sensors are at hand


class SensorCap:
    """Args: most: sensors that a device may have."""

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._most = most
        self._known: dict[str, set[str]] = {}

    async def judge(self, batch: Batch) -> None:
        """Turn the readings of sensors beyond the limit into refusals, in the batch itself."""
        device = batch.envelope.device
        wanted = {item.reading.sensor for item in batch.items}
        known = self._known.get(device)
        if known is not None and wanted <= known:
            return
        if known is None or len(known | wanted) > self._most:
            known = await self._look_up(device)
        for name in sorted(wanted - known):
            if len(known) < self._most:
                known.add(name)
        beyond = [item for item in batch.items if item.reading.sensor not in known]
        if beyond:
            batch.items = [item for item in batch.items if item.reading.sensor in known]
            batch.refusals = sorted([*batch.refusals, *map(_refusal, beyond)])

    async def _look_up(self, device: str) -> set[str]:
        if len(self._known) >= _MOST_DEVICES:
            self._known.clear()
        self._known[device] = await quotas.sensors(self._database, device)
        return self._known[device]


def _refusal(item: Item) -> Refusal:
    return Refusal(item.place, item.reading.id, REASON, bytes(item.body).decode())
