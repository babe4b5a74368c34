# Asks an NTP server for the time, if the config names one. Nobody waits for it.

import clock

_EVERY_MS = 3600 * 1000
_AGAIN_MS = 60_000
_TO_THE_SECOND_MS = 1000


class Ntp:
    # ask(host) -> Unix ms, or OSError; it may block for about a second.
    def __init__(self, host, ask, clock, wifi, watch, tell):
        self._host = host
        self._ask = ask
        self._clock = clock
        self._wifi = wifi
        self._watch = watch
        self._tell = tell

    async def run(self):
        while True:
            good = self._wifi.up() and self.run_once()
            await self._watch.sleep("ntp", _EVERY_MS if good else _AGAIN_MS)

    def run_once(self):
        """Ask once. Returns whether there was an answer."""
        try:
            self._clock.learn(self._ask(self._host), clock.NTP, _TO_THE_SECOND_MS)
            return True
        except (OSError, ValueError, IndexError) as err:
            self._tell("log", "ntp: %r" % err)
            return False
