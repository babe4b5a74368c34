# PURE: uptime that never wraps, and the time of day as far as it is known.
# Integers only: a board's float has 24 bits, a step of 128 seconds at today's date.

_EPOCH_2000_S = 946684800
# A clock that says less was never set; one that says more was set wrongly.
_PLAUSIBLE_FROM_S = 1735689600
_PLAUSIBLE_TO_S = 4102444800

# Where the time came from, worst first.
NONE = "none"
RTC = "rtc"
SYNCED = "synced"
NTP = "ntp"

_NTP_GOOD_FOR_MS = 3 * 3600 * 1000


def unix_s(port_s, gmtime):
    """Seconds of the Unix epoch from this port's time(): some count from 2000."""
    return port_s + (_EPOCH_2000_S if gmtime(0)[0] == 2000 else 0)


def port_s(seconds, gmtime):
    """The inverse of unix_s."""
    return seconds - (_EPOCH_2000_S if gmtime(0)[0] == 2000 else 0)


def plausible(seconds):
    """Whether Unix seconds can be now: tells a set clock from one that started at its epoch."""
    return _PLAUSIBLE_FROM_S <= seconds < _PLAUSIBLE_TO_S


class Clock:
    # ticks_ms and ticks_diff are the port's: ticks wrap, after 12.4 days on an ESP32.
    # keep(unix_ms) is told of each new time, so that it can outlive a soft reset.
    def __init__(self, ticks_ms, ticks_diff, keep=None):
        self._ticks_ms = ticks_ms
        self._ticks_diff = ticks_diff
        self._keep = keep
        self._last = ticks_ms()
        self._up_ms = 0
        self._offset_ms = None
        self._ntp_until_ms = 0
        self.state = NONE

    def up_ms(self):
        """Milliseconds since boot. To be called at least once in half a wrap (6.2 days)."""
        now = self._ticks_ms()
        self._up_ms += self._ticks_diff(now, self._last)
        self._last = now
        return self._up_ms

    def now_ms(self):
        """Unix milliseconds, or None while nobody told the time."""
        return None if self._offset_ms is None else self.up_ms() + self._offset_ms

    def learn(self, unix_ms, source=SYNCED, slack_ms=0):
        """Take the time, forward or back; a difference within slack_ms is the network's."""
        if unix_ms is None or not plausible(unix_ms // 1000) or self._knows_better(source):
            return
        if source == NTP:
            self._ntp_until_ms = self.up_ms() + _NTP_GOOD_FOR_MS
        first = self._offset_ms is None or self.state == RTC
        self.state = source
        if first or abs(unix_ms - self.now_ms()) > slack_ms:
            self._offset_ms = unix_ms - self.up_ms()
            if self._keep and source != RTC:
                self._keep(unix_ms)

    def _knows_better(self, source):
        return source != NTP and self.state == NTP and self.up_ms() < self._ntp_until_ms
