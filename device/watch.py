# The deadlines that the loops state ("I will be back by T"), and the feeding of the
# watchdog for as long as none is overdue. A loop that hangs ends in a reset.

_SLACK_MS = 30_000  # for a blocking name look-up or a slow flash in another loop
_GRACE_MS = 20_000  # until it is armed: for a person, or for `make flash`, to interrupt
_SLICE_MS = 3600 * 1000  # ticks wrap: no single sleep comes near half of their range


class Watch:
    def __init__(self, up_ms, sleep_ms):
        self._up_ms = up_ms
        self._sleep_ms = sleep_ms
        self._due_ms = {}

    def back_in(self, who, ms):
        """`who` will state its next deadline within this time."""
        self._due_ms[who] = self._up_ms() + ms + _SLACK_MS

    async def sleep(self, who, ms):
        """Sleep with a stated deadline, in slices."""
        while True:
            self.back_in(who, ms)
            await self._sleep_ms(min(ms, _SLICE_MS))
            ms -= _SLICE_MS
            if ms <= 0:
                return

    def overdue(self):
        """The name of a loop that is not back yet, or None."""
        now = self._up_ms()
        for who in self._due_ms:
            if now > self._due_ms[who]:
                return who
        return None

    async def run(self, arm, timeout_ms, told):
        """Feed the watchdog; once a loop is overdue tell which one, and never feed again.

        arm(timeout_ms) gives the function that feeds it.
        """
        await self._sleep_ms(_GRACE_MS)
        feed = arm(timeout_ms)
        while self.overdue() is None:
            feed()
            await self._sleep_ms(timeout_ms // 3)
        told(self.overdue())
        while True:  # the watchdog does the rest
            await self._sleep_ms(_SLICE_MS)
