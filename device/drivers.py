# The drivers of the standard firmware's sensors. Each is given its pin or bus, names its
# channels, and reads them as [(channel, value, unit)]. Units are SenML's (RFC 8428).

import asyncio


class Internal:
    # The chip's own temperature: needs no wiring.
    # degrees() is in Celsius, on the classic ESP32 in Fahrenheit.
    def __init__(self, name, degrees, fahrenheit=False):
        self.channels = [name]
        self._degrees = degrees
        self._fahrenheit = fahrenheit

    async def read(self):
        degrees = self._degrees()
        celsius = (degrees - 32) / 1.8 if self._fahrenheit else degrees
        return [(self.channels[0], round(celsius, 1), "Cel")]


class Adc:
    def __init__(self, name, adc, scale, offset, unit):
        self.channels = [name]
        self._adc = adc
        self._scale = scale
        self._offset = offset
        self._unit = unit

    async def read(self):
        volts = self._adc.read_uv() / 1_000_000
        return [(self.channels[0], volts * self._scale + self._offset, self._unit)]


class Dht:
    # DHT11 and DHT22; they need a second between two readings.
    def __init__(self, name, device):
        self.channels = [name + ".temperature", name + ".humidity"]
        self._device = device

    async def read(self):
        self._device.measure()
        return [
            (self.channels[0], self._device.temperature(), "Cel"),
            (self.channels[1], self._device.humidity(), "%RH"),
        ]


class Ds18b20:
    # Every probe on the bus; with more than one each is named by the end of its address.
    convert_s = 0.75

    def __init__(self, name, bus):
        self.channels = [name]
        self._name = name
        self._bus = bus
        self._roms = []

    async def read(self):
        if not self._roms:
            self._find()
        self._bus.convert_temp()
        await asyncio.sleep(self.convert_s)
        return [self._one(at) for at in range(len(self._roms))]

    def _find(self):
        self._roms = self._bus.scan()
        if not self._roms:
            raise OSError("no probe on the bus")
        if len(self._roms) > 1:
            tails = ["".join("%02x" % b for b in rom[1:7]) for rom in self._roms]
            self.channels = [self._name + "." + tail for tail in tails]

    def _one(self, at):
        # One bad probe does not take its neighbours along.
        try:
            return (self.channels[at], self._bus.read_temp(self._roms[at]), "Cel")
        except Exception:
            return (self.channels[at], None, None)


class Digital:
    def __init__(self, name, pin):
        self.channels = [name]
        self._pin = pin

    async def read(self):
        return [(self.channels[0], bool(self._pin.value()), None)]


class Pulses:
    # Counts since boot, so that a lost reading loses no pulse.
    def __init__(self, name, pin, edge):
        self.channels = [name]
        self._count = 0
        pin.irq(handler=self._counted, trigger=edge)

    def _counted(self, _):
        self._count += 1

    async def read(self):
        return [(self.channels[0], self._count, "count")]
