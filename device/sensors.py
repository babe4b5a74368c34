# Which drivers the config asks for, on which pins. Hardware modules are imported only where
# a sensor needs them.

import drivers


def build(specs, complain):
    """The drivers that the config asks for; a wrong entry costs only itself."""
    made = []
    for spec in specs:
        kind = spec.get("type")
        name = spec.get("name") or kind
        try:
            made.append(_KINDS[kind](name, spec))
        except Exception as err:  # whatever the hardware modules raise
            problem = "unknown type %s" % kind if kind not in _KINDS else repr(err)
            complain("sensor %s: %s" % (name, problem))
    return made


def _internal(name, spec):
    import esp32

    if hasattr(esp32, "mcu_temperature"):
        return drivers.Internal(name, esp32.mcu_temperature)
    return drivers.Internal(name, esp32.raw_temperature, fahrenheit=True)


def _adc(name, spec):
    from machine import ADC, Pin

    adc = ADC(Pin(spec["pin"]), atten=ADC.ATTN_11DB)
    return drivers.Adc(
        name, adc, spec.get("scale", 1), spec.get("offset", 0), spec.get("unit", "V")
    )


def _dht11(name, spec):
    import dht
    from machine import Pin

    return drivers.Dht(name, dht.DHT11(Pin(spec["pin"])))


def _dht22(name, spec):
    import dht
    from machine import Pin

    return drivers.Dht(name, dht.DHT22(Pin(spec["pin"])))


def _ds18b20(name, spec):
    import ds18x20
    import onewire
    from machine import Pin

    return drivers.Ds18b20(name, ds18x20.DS18X20(onewire.OneWire(Pin(spec["pin"]))))


def _input(spec):
    from machine import Pin

    pull = {"up": Pin.PULL_UP, "down": Pin.PULL_DOWN, None: None}[spec.get("pull")]
    return Pin(spec["pin"], Pin.IN, pull)


def _digital(name, spec):
    return drivers.Digital(name, _input(spec))


def _pulses(name, spec):
    from machine import Pin

    edge = {"rising": Pin.IRQ_RISING, "falling": Pin.IRQ_FALLING}[spec.get("edge", "falling")]
    return drivers.Pulses(name, _input(spec), edge)


_KINDS = {
    "internal": _internal,
    "adc": _adc,
    "dht11": _dht11,
    "dht22": _dht22,
    "ds18b20": _ds18b20,
    "digital": _digital,
    "pulses": _pulses,
}
