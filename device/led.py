# What the board's light says. Lit = an exchange is under way; then nothing more =
# acknowledged, two short blinks = it will be tried again. 1 Hz = no Wi-Fi, fast = the key
# was refused or the config is wrong, steady = safe mode.

_MIN_LIT_MS = 50
_BLINK_MS = 80

# What it shows between exchanges: the first condition that holds; half a period, 0 = steady.
_CONDITIONS = (("config", 100), ("key", 100), ("safe", 0), ("wifi", 500))
_LOOK_MS = 250


class Led:
    # put(level) lights it with 1; sleep_ms is asyncio's.
    def __init__(self, put, sleep_ms):
        self._put = put
        self._sleep_ms = sleep_ms
        self._level = None
        self._exchanging = False
        self._holding = set()
        self._show(0)

    def set(self, condition, holds):
        """Say that a condition holds, or that it no longer does."""
        if holds:
            self._holding.add(condition)
        else:
            self._holding.discard(condition)

    async def run(self):
        phase = 0
        while True:
            half_ms = self._half_ms()
            phase = 1 - phase if half_ms else self._base()
            if not self._exchanging:
                self._show(phase)
            await self._sleep_ms(half_ms or _LOOK_MS)

    async def lit(self, exchange, body):
        """Run the exchange with the light on, for as long as an eye needs to see it."""
        self._exchanging = True
        self._show(1)
        try:
            return await exchange(body)
        finally:
            await self._sleep_ms(_MIN_LIT_MS)
            self._dark()

    async def again(self):
        """Two short blinks: what was just sent will be sent again."""
        self._exchanging = True
        for level in (0, 1, 0, 1):
            self._show(level)
            await self._sleep_ms(_BLINK_MS)
        self._dark()

    def _dark(self):
        self._exchanging = False
        self._show(self._base())

    def _half_ms(self):
        for condition, half_ms in _CONDITIONS:
            if condition in self._holding:
                return half_ms
        return 0

    def _base(self):
        return 1 if "safe" in self._holding and not self._half_ms() else 0

    def _show(self, level):
        if level != self._level:
            self._level = level
            self._put(level)
