# PURE: what a board says of itself with each attempt.

FIRMWARE = "1.0.0"
_LOOK_AGAIN_MS = 300_000


class Health:
    # fs_free() walks the whole file system, so it is asked once in five minutes.
    def __init__(self, reset, period_ms, outbox, up_ms, heap_free, fs_free, rssi):
        self._reset = reset
        self._period_ms = period_ms
        self._outbox = outbox
        self._up_ms = up_ms
        self._heap_free = heap_free
        self._fs_free = fs_free
        self._rssi = rssi
        self._free = None
        self._look_ms = 0

    def report(self):
        return {
            "firmware": FIRMWARE,
            "reset": self._reset,
            "period_ms": self._period_ms,
            "heap_free": self._heap_free(),
            "fs_free": self._fs_free_bytes(),
            "rssi": self._rssi(),
            "outbox": len(self._outbox),
            "dropped": self._outbox.dropped,
            "dead": self._outbox.dead,
        }

    def _fs_free_bytes(self):
        if self._up_ms() >= self._look_ms:
            self._look_ms = self._up_ms() + _LOOK_AGAIN_MS
            try:
                self._free = self._fs_free()
            except OSError:
                self._free = None
        return self._free
