# PURE: what travels around the readings of one attempt, and is repeated until acknowledged.


class Envelope:
    # health() gives a dict of what the parts say of themselves; report has .text, .forget.
    def __init__(self, device, boot, clock, lost, report, health):
        self.seq = 0
        self.retries = 0  # attempts of this boot that ended without a stored answer
        self._device = device
        self._boot = boot
        self._clock = clock
        self._lost = lost
        self._report = report
        self._health = health
        self._sent = None

    def next(self, oldest_ms):
        """The fields of a new attempt, without its readings."""
        self.seq += 1
        self._sent = (self._lost.ranges(), self._report.text)
        health = self._health()
        health["clock"] = self._clock.state
        health["retries"] = self.retries
        health["oldest_ms"] = oldest_ms
        health["crash"] = self._report.text
        fields = {
            "device": self._device,
            "seq": self.seq,
            "up_ms": self._clock.up_ms(),
            "sent_ms": self._clock.now_ms(),
            "health": health,
        }
        if self._boot:
            fields["boot"] = self._boot
        if self._sent[0]:
            fields["lost"] = [{"boot": b, "from": f, "to": t} for b, f, t in self._sent[0]]
        return fields

    def acknowledged(self):
        """The gateway has what the last attempt carried: it need not be said again."""
        lost, crash = self._sent
        self._lost.forget(lost)
        self._report.forget(crash)

    def age_ms(self, at_ms, boot, up_ms):
        """How old a stamp is, or None if nobody can tell."""
        if at_ms is not None:
            now = self._clock.now_ms()
            return None if now is None else max(0, now - at_ms)
        if up_ms is not None and boot == self._boot:
            return self._clock.up_ms() - up_ms
        return None
