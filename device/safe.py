# Safe mode: after too many boots in a row that ended too soon, the board samples nothing and
# only talks to the gateway, so that a person can see why.

_QUICK_MS = 60_000
_TOO_MANY = 5
_TRY_AGAIN_MS = 3600 * 1000
_MARK = b"FP"


class Starts:
    # Counted in RTC memory, which a reset keeps and a power cut does not, so that a person
    # who plugs and unplugs a board never meets safe mode. memory() reads it, memory(bytes)
    # writes it.
    def __init__(self, memory, after_power_on):
        self._memory = memory
        kept = b"" if after_power_on else bytes(memory())
        self.ended_soon = kept[2] if len(kept) == 3 and kept[:2] == _MARK else 0
        self.safe = self.ended_soon >= _TOO_MANY
        self._keep(self.ended_soon + 1)

    def calm(self):
        """This boot has lasted, or ends on purpose."""
        self._keep(0)

    async def run(self, watch, reset):
        """Call this boot calm in time, and out of safe mode try to work as usual again."""
        await watch.sleep("starts", _QUICK_MS)
        self.calm()
        while True:
            await watch.sleep("starts", _TRY_AGAIN_MS)
            if self.safe:
                reset()

    def _keep(self, count):
        self._memory(_MARK + bytes([min(count, 255)]))


class NoOutbox:
    # Stands in for one that can not be opened even in safe mode.
    dropped = dead = 0

    def __len__(self):
        return 0

    def batch(self, count, nbytes):
        return []

    def remove(self, keys):
        pass

    def bury(self, key, reason):
        pass
