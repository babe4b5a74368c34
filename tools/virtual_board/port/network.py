# The `network` of an ESP32 whose access point is a file: `up` in it means within reach,
# `wrong password` that it is and does not let us in.
# mypy: ignore-errors

import binascii

import host

STA_IF = 0
AP_IF = 1
STAT_IDLE = 1000
STAT_CONNECTING = 1001
STAT_NO_AP_FOUND = 201
STAT_WRONG_PASSWORD = 202
STAT_GOT_IP = 1010


class WLAN:
    IF_STA = STA_IF
    IF_AP = AP_IF

    _radio = [False, False]  # noqa: RUF012 the interfaces are active; there is one radio
    _joining = False

    def __init__(self, interface=STA_IF):
        self._interface = interface

    def active(self, on=None):
        if on is None:
            return self._radio[self._interface]
        self._radio[self._interface] = bool(on)
        if not on and self._interface == STA_IF:
            WLAN._joining = False
        return None

    def connect(self, ssid=None, key=None, **_):
        if not self._radio[STA_IF]:
            raise OSError("Wifi Not Started")
        WLAN._joining = True  # and joined again by itself whenever the network comes back

    def disconnect(self):
        WLAN._joining = False

    def isconnected(self):
        return self._interface == STA_IF and routed()

    def status(self, what=None):
        if what == "rssi":
            if not self.isconnected():
                raise OSError("Wifi Not Connected")
            return -61
        if self.isconnected():
            return STAT_GOT_IP
        if not WLAN._joining:
            return STAT_IDLE
        return STAT_WRONG_PASSWORD if host.link() == "wrong password" else STAT_NO_AP_FOUND

    def config(self, what=None, **_):
        if what is None:
            return None
        return {"mac": binascii.unhexlify(host.orders["mac"]), "channel": 1}[what]

    def ifconfig(self, *_):
        if self.isconnected():
            return ("192.168.4.2", "255.255.255.0", "192.168.4.1", "192.168.4.1")
        return ("0.0.0.0", "0.0.0.0", "0.0.0.0", "0.0.0.0")

    def scan(self):
        mac = b"\x02\x00\x00\x00\x00\x01"
        return [(b"virtual", mac, 1, -61, 3, False)] if host.link_up() else []


def routed():
    """Whether a packet would find its way out."""
    return WLAN._radio[STA_IF] and WLAN._joining and host.link_up()
