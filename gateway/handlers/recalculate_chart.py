"""`recalculate_chart`: makes the hours and days that charts read anew from the readings.

For when a calibration was changed. Charts show the old numbers until the new ones take their place.
"""

from typing import Any

from gateway.handlers.days import Days
from gateway.handlers.rebuild import range_of, rebuild
from gateway.kinds import Context, Kind
from gateway.store import aggregates
from gateway.store.jobs import Limits

NAME = "recalculate_chart"
_TIMEOUT_S = 3600.0
_LIMITS = Limits(deadline_ms=6 * 3_600_000, concurrency=1)


def kind(settings: dict[str, Any]) -> Kind:
    calibration = aggregates.calibration_of(settings)

    async def recalculate(context: Context, args: Days) -> str | None:
        wanted = await range_of(context, args.device, args.bounds())
        await rebuild(context, wanted, calibration)
        return None

    return Kind(NAME, recalculate, Days, _LIMITS, _TIMEOUT_S)
