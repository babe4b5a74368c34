"""Makes the aggregates of a range anew, step by step, for the jobs that do."""

from functools import partial

from gateway.kinds import Context
from gateway.outcomes import Permanent
from gateway.store import aggregates, rebuilds
from gateway.store.rebuilds import Range


async def range_of(context: Context, device: str | None, bounds: tuple[int, int]) -> Range:
    """Return the range that the args mean.

    Raises:
        Permanent: there is no such device.
    """
    if device is None:
        return Range(None, *bounds)
    device_id = await rebuilds.find_device(context.database, device)
    if device_id is None:
        raise Permanent(f"there is no device {device}: /v1/devices lists those that are known")
    return Range(device_id, *bounds)


async def rebuild(
    context: Context, wanted: Range, calibration: str, part: tuple[float, float] = (0.0, 1.0)
) -> None:
    """Make the aggregates of the range anew; one that was interrupted goes on.

    Those stay as they are of which not all readings are kept.

    Args:
        part: of the job that this is, for its progress.

    Raises:
        Permanent: that is all of them.
    """
    database, job_id = context.database, context.job_id
    days = await rebuilds.days_of(database, wanted)
    if days.total and days.unwhole == days.total:
        raise Permanent("the readings of these days are not kept any more: charts stay as they are")

    def progress(done: float, stage: str) -> None:
        context.progress(part[0] + (part[1] - part[0]) * done, stage)

    progress(0.0, "making room")
    while await database.write(lambda c: rebuilds.clear(c, job_id)):
        pass
    while not await database.write(lambda c: rebuilds.begin(c, job_id, wanted, calibration)):
        pass
    after = await database.write(lambda c: rebuilds.reached(c, job_id))
    while after < (newest := await aggregates.cursor(database)):
        found, seen = await rebuilds.next_of_range(database, wanted, after, newest)
        after = seen
        if found is not None:
            after = await database.write(
                partial(rebuilds.count, job_id=job_id, none_before=found - 1)
            )
        progress(0.9 * after / newest, "counting the readings")
    progress(0.9, "putting in place")
    while not await database.write(
        partial(rebuilds.put_in_place, job_id=job_id, none_before=after)
    ):
        pass
    if days.unwhole:
        kept = f"{days.unwhole} of {days.total} days of sensors stay as they were"
        context.log.info("%s: not all their readings are kept", kept)
        progress(1.0, f"done; {kept}: not all their readings are kept")
