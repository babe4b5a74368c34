import asyncio

import watch
import wifi


class Radio:
    # A network.WLAN: `comes_up` says whether an attempt leads to a connection, and what
    # the calls raise before.
    def __init__(self, comes_up, raises=None):
        self.comes_up = comes_up
        self.raises = raises
        self.calls = []
        self.connected = False
        self.reason = 1001

    def isconnected(self):
        return self.connected

    def active(self, on):
        self.calls.append(("active", on))

    def connect(self, *network):
        self.calls.append(("connect", network))
        if self.raises is not None:
            raise self.raises
        self.connected = self.comes_up(self)

    def disconnect(self):
        self.calls.append(("disconnect",))
        if self.raises is not None:
            raise self.raises

    def ifconfig(self):
        return ("10.0.0.2",)

    def status(self, what=None):
        if what is None:
            return self.reason
        if not self.connected:
            raise OSError("Wifi Not Connected")
        return -61


class Light:
    def __init__(self):
        self.seen = []

    def set(self, condition, holds):
        self.seen.append((condition, holds))


class Enough(Exception):
    pass


def _run(radio, ms, ssid="farm", tell=lambda event, value: None):
    now = [0]

    async def sleep_ms(slept_ms):
        now[0] += slept_ms
        if now[0] > ms:
            raise Enough

    light = Light()
    one = wifi.Wifi(
        radio,
        ssid,
        "secret",
        lambda: 0.0,
        watch.Watch(lambda: now[0], sleep_ms),
        light,
        tell,
    )
    try:
        asyncio.run(one.run())
    except Enough:
        return one, light
    raise AssertionError("the loop ended")


def test_it_joins_the_network_of_the_config():
    radio = Radio(lambda radio: True)
    one, light = _run(radio, 5000)
    assert radio.calls == [("active", True), ("connect", ("farm", "secret"))]
    assert one.up()
    assert one.rssi() == -61
    assert light.seen[-1] == ("wifi", False)


def test_without_a_name_it_joins_the_network_that_the_radio_remembers():
    radio = Radio(lambda radio: True)
    _run(radio, 5000, ssid=None)
    assert radio.calls[-1] == ("connect", ())


def test_a_radio_that_does_not_join_is_turned_off_and_on_for_ever():
    radio = Radio(lambda radio: False)
    one, light = _run(radio, 300_000)
    assert radio.calls[:4] == [
        ("active", True),
        ("connect", ("farm", "secret")),
        ("disconnect",),
        ("active", False),
    ]
    assert radio.calls.count(("active", True)) >= 12  # never more than some 25 s apart
    assert set(light.seen) == {("wifi", True)}
    assert one.rssi() is None


def test_whatever_the_driver_raises_the_loop_goes_on():
    for err in (OSError("Wifi Internal Error"), OSError(-1), RuntimeError("0x3002"), OSError()):
        radio = Radio(lambda radio: False, raises=err)
        _run(radio, 60_000)
        assert radio.calls.count(("active", False)) >= 5


def test_a_network_that_went_away_is_joined_again():
    radio = Radio(lambda radio: radio.calls.count(("connect", ("farm", "secret"))) != 2)
    one, light = _run(radio, 5000)
    radio.connected = False
    one, light = _run(radio, 60_000)
    assert one.up()
    assert ("wifi", True) in light.seen
    assert light.seen[-1] == ("wifi", False)


def test_it_says_why_it_did_not_join():
    for reason, said in (
        (201, "wifi: no such network here (an ESP32 knows 2.4 GHz only)"),
        (202, "wifi: wrong password"),
        (204, "wifi: wrong password"),
        (1001, "wifi: not joined, status 1001"),
    ):
        radio, heard = Radio(lambda radio: False), []
        radio.reason = reason
        _run(radio, 20_000, tell=lambda event, value, heard=heard: heard.append(value))
        assert heard[:2] == ["wifi: joining farm", said]
