"""The watcher of the alarms, looking once at a house, by the house's own clock."""

from gateway.alarms import Watcher
from gateway.store.clock import Instant
from gateway.tables import Alarms
from tests.web.house import House


def watcher_of(house: House, **settings: object) -> Watcher:
    """Return a watcher that began to look now; both its clocks are the house's."""
    return Watcher(house.db, Alarms(**settings), lambda: Instant(house.now_ms[0], 0))  # type: ignore[arg-type]
