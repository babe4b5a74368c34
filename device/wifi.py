# Wi-Fi: a bounded loop that tries to join, and turns the radio off and on when it can not.

import backoff

_JOIN_MS = 15_000
_LOOK_MS = 500
_MAX_OFF_MS = 8000

# What an ESP32's status() says after it has tried; a handshake that ends too late or is not
# understood is a wrong password too.
_NO_NETWORK = "no such network here (an ESP32 knows 2.4 GHz only)"
_WRONG_PASSWORD = "wrong password"
_REASONS = {201: _NO_NETWORK, 202: _WRONG_PASSWORD, 204: _WRONG_PASSWORD, 15: _WRONG_PASSWORD}


def station():
    import network

    return network.WLAN(network.STA_IF)


class Wifi:
    # wlan: a network.WLAN. Without an ssid it joins the network that the radio remembers.
    def __init__(self, wlan, ssid, password, random, watch, led, tell):
        self._wlan = wlan
        self._ssid = ssid
        self._password = password
        self._random = random
        self._watch = watch
        self._led = led
        self._tell = tell
        self._failures = 0

    def up(self):
        return self._wlan.isconnected()

    def rssi(self):
        """Signal strength in dBm, or None."""
        try:
            return self._wlan.status("rssi") if self.up() else None
        except (OSError, ValueError, RuntimeError):
            return None

    async def run(self):
        while True:
            self._led.set("wifi", not self.up())
            if self.up():
                self._failures = 0
                await self._watch.sleep("wifi", _LOOK_MS)
            elif not await self._join():
                self._failures += 1
                self._radio_off()
                off_ms = backoff.wait_ms(self._failures, self._random, cap_ms=_MAX_OFF_MS)
                await self._watch.sleep("wifi", off_ms)

    async def _join(self):
        self._tell("log", "wifi: joining %s" % (self._ssid or "the last network"))
        try:
            self._wlan.active(True)
            if self._ssid:
                self._wlan.connect(self._ssid, self._password)
            else:
                self._wlan.connect()
        except (OSError, RuntimeError, TypeError) as err:
            self._tell("log", "wifi: %r" % err)
            return False
        for _ in range(_JOIN_MS // _LOOK_MS):
            if self.up():
                self._tell("log", "wifi: up, %s" % self._wlan.ifconfig()[0])
                return True
            await self._watch.sleep("wifi", _LOOK_MS)
        self._tell("log", "wifi: " + self._why())
        return False

    def _why(self):
        try:
            status = self._wlan.status()
        except (OSError, ValueError, RuntimeError) as err:
            return repr(err)
        return _REASONS.get(status, "not joined, status %s" % status)

    def _radio_off(self):
        # The driver of a radio that is stuck in some state forgets it only so.
        try:
            self._wlan.disconnect()
        except (OSError, RuntimeError):
            pass
        try:
            self._wlan.active(False)
        except (OSError, RuntimeError) as err:
            self._tell("log", "wifi: %r" % err)
