"""`reprocess_readings`: puts what is in quarantine to the rules of today, and what is stored to
the calibrations of today.
"""

from functools import partial
from typing import Any

from msgspec import Struct

from gateway.handlers.days import Day, Days
from gateway.handlers.rebuild import range_of, rebuild
from gateway.kinds import Context, Kind
from gateway.model import DeviceName
from gateway.store import aggregates, quarantine
from gateway.store.jobs import Limits

NAME = "reprocess_readings"
_TIMEOUT_S = 3600.0
_LIMITS = Limits(deadline_ms=6 * 3_600_000, concurrency=1)


class Args(Struct, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}):
    """Whose quarantine is judged again, null: everybody's; and of which days, whole and in UTC,
    what is stored is calibrated again, null: of none.
    """

    device: DeviceName | None = None
    first: Day | None = None
    last: Day | None = None

    def __post_init__(self) -> None:
        self.days()

    def days(self) -> Days | None:
        if self.first is None and self.last is None:
            return None
        if self.first is None or self.last is None:
            raise ValueError("from and to go together: give both, or neither")
        return Days(self.first, self.last, self.device)


def kind(settings: dict[str, Any]) -> Kind:
    calibration = aggregates.calibration_of(settings)

    async def reprocess(context: Context, args: Args) -> str | None:
        days = args.days()
        # The device is looked up before anything is done, so that a slip costs nothing.
        bounds = (0, 0) if days is None else days.bounds()
        wanted = await range_of(context, args.device, bounds)
        await _judge_again(context, args.device, 1.0 if days is None else 0.5)
        if days is not None:
            await rebuild(context, wanted, calibration, (0.5, 1.0))
        return None

    return Kind(NAME, reprocess, Args, _LIMITS, _TIMEOUT_S)


async def _judge_again(context: Context, device: str | None, share: float) -> None:
    newest = await context.database.write(quarantine.newest)
    after = released = kept = 0
    while judged := await context.database.write(
        partial(quarantine.judge, after=after, newest=newest, device=device)
    ):
        after, released, kept = judged.upto, released + judged.released, kept + judged.kept
        stage = f"judging again: {released} left quarantine, {kept} stay"
        context.progress(share * after / newest, stage)
    context.log.info("%d left quarantine, %d stay in it", released, kept)
