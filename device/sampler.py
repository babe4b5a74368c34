# The loop that reads the sensors into the outbox, each period.

import asyncio
import gc

import wire


def next_due(due_ms, now_ms, period_ms):
    """The first instant of the schedule after now: no drift, and no catching up."""
    missed = max(0, now_ms - due_ms) // period_ms
    return due_ms + (missed + 1) * period_ms


class Sampler:
    sensor_s = 5  # the longest that one sensor may take

    # Each sensor has .name, .channels (names) and `async read()` -> [(channel, value, unit)].
    def __init__(self, sensors, outbox, ids, clock, lost, watch, news, tell, period_ms):
        self._sensors = sensors
        self._outbox = outbox
        self._ids = ids
        self._clock = clock
        self._lost = lost
        self._watch = watch
        self._news = news
        self._tell = tell
        self._period_ms = period_ms

    async def run(self):
        due_ms = self._clock.up_ms()
        while True:
            await self.run_once()
            now_ms = self._clock.up_ms()
            due_ms = next_due(due_ms, now_ms, self._period_ms)
            await self._watch.sleep("sampler", due_ms - now_ms)

    async def run_once(self):
        """Read every sensor once. A sensor that fails gives readings that say so."""
        for sensor in self._sensors:
            self._watch.back_in("sampler", self.sensor_s * 1000)
            try:
                values = await asyncio.wait_for(sensor.read(), self.sensor_s)
            except asyncio.TimeoutError:
                self._failed(sensor, "no answer within %d s" % self.sensor_s)
            except Exception as err:  # a driver may raise anything; the others go on
                self._failed(sensor, "%s: %s" % (type(err).__name__, err))
            else:
                for channel, value, unit in values:
                    self._keep(channel, value, unit)

    def _failed(self, sensor, error):
        for channel in sensor.channels:
            self._keep(channel, None, None, error)

    def _keep(self, channel, value, unit, error=None):
        at_ms = self._clock.now_ms()
        up_ms = self._clock.up_ms() if at_ms is None else None
        text = value if isinstance(value, str) else None
        reading_id = self._ids.next()
        try:
            self._outbox.put(
                wire.record(
                    reading_id,
                    channel,
                    None if text is not None else value,
                    unit,
                    at_ms,
                    up_ms,
                    "no value" if value is None and error is None else error,
                    text,
                )
            )
        except (OSError, ValueError, MemoryError) as err:
            gc.collect()
            self._lost.add(reading_id)
            self._tell("log", "reading %s lost: %r" % (reading_id, err))
        else:
            self._tell("put", reading_id)
            self._news.set()
