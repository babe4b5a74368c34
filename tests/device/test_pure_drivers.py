import asyncio

import drivers


def _read(sensor):
    return asyncio.run(sensor.read())


class Adc:
    def read_uv(self):
        return 1_250_000


class Dht:
    def measure(self):
        self.measured = True

    def temperature(self):
        assert self.measured
        return 21.5

    def humidity(self):
        return 44.1


class Bus:
    # A 1-Wire bus with a DS18B20 for each address; one in `bad` does not answer.
    def __init__(self, *roms, bad=()):
        self.roms = list(roms)
        self.bad = bad
        self.scans = 0

    def scan(self):
        self.scans += 1
        return self.roms

    def convert_temp(self):
        pass

    def read_temp(self, rom):
        if rom in self.bad:
            raise Exception("CRC error")  # as the driver of MicroPython does
        return 20.0 + rom[1]


class Pin:
    def __init__(self):
        self.level = 1

    def value(self):
        return self.level

    def irq(self, handler, trigger):
        self.handler = handler
        self.trigger = trigger


_ROMS = (b"\x28\x01\x00\x00\x00\x00\x00\xaa", b"\x28\x02\x00\x00\x00\x00\x00\xbb")


def _fast(bus):
    probe = drivers.Ds18b20("soil", bus)
    probe.convert_s = 0
    return probe


def test_the_chips_own_temperature():
    assert _read(drivers.Internal("board.temperature", lambda: 53.3333)) == [
        ("board.temperature", 53.3, "Cel")
    ]
    assert _read(drivers.Internal("t", lambda: 128, fahrenheit=True)) == [("t", 53.3, "Cel")]


def test_a_voltage_may_be_scaled_into_what_it_stands_for():
    assert _read(drivers.Adc("cell", Adc(), 1, 0, "V")) == [("cell", 1.25, "V")]
    assert _read(drivers.Adc("level", Adc(), 4, -1, "m")) == [("level", 4.0, "m")]


def test_a_dht_gives_two_readings():
    assert _read(drivers.Dht("dht22", Dht())) == [
        ("dht22.temperature", 21.5, "Cel"),
        ("dht22.humidity", 44.1, "%RH"),
    ]


def test_a_single_probe_has_the_name_of_the_config():
    assert _read(_fast(Bus(_ROMS[0]))) == [("soil", 21.0, "Cel")]


def test_several_probes_are_told_apart_by_their_addresses():
    probe = _fast(Bus(*_ROMS))
    assert _read(probe) == [("soil.010000000000", 21.0, "Cel"), ("soil.020000000000", 22.0, "Cel")]
    _read(probe)
    assert probe.channels == ["soil.010000000000", "soil.020000000000"]


def test_a_bad_probe_does_not_take_its_neighbours_along():
    values = _read(_fast(Bus(*_ROMS, bad=(_ROMS[0],))))
    assert [value for _, value, _ in values] == [None, 22.0]


def test_a_bus_without_a_probe_is_searched_again_each_time():
    bus = Bus()
    probe = _fast(bus)
    for _ in range(2):
        try:
            _read(probe)
        except OSError:
            continue
        raise AssertionError("read a probe that is not there")
    bus.roms = [_ROMS[0]]
    assert len(_read(probe)) == 1
    assert bus.scans == 3


def test_a_digital_input_is_true_or_false():
    pin = Pin()
    sensor = drivers.Digital("door", pin)
    assert _read(sensor) == [("door", True, None)]
    pin.level = 0
    assert _read(sensor) == [("door", False, None)]


def test_pulses_are_counted_since_boot():
    pin = Pin()
    sensor = drivers.Pulses("rain", pin, 2)
    assert _read(sensor) == [("rain", 0, "count")]
    for _ in range(3):
        pin.handler(pin)
    assert _read(sensor) == [("rain", 3, "count")]
    assert pin.trigger == 2
