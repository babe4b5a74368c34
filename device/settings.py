# The defaults, over them /config.json, over them `over`. A wrong value never stops a board:
# its default stands in, and the problem is told.

import json

# Whoever starts main.py may fill this: the virtual board does, from its flags.
over = {}

_BAD_KEY = "bad"
_CABLE = "cable:"
_BASE64_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_DEVICE_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"


def defaults():
    return {
        "device": None,  # None: "esp32-" + the MAC address
        "gateway": None,  # "http(s)://HOST:PORT", or "cable:"; None: readings wait in the outbox
        "tls_cert": None,  # base64 of the certificate (DER) that an https gateway must have
        "cable": False,  # True: over the USB cable too, whichever way answers
        "key": None,  # 64 hex characters; None: the gateway runs with --open
        "wifi": {"ssid": None, "password": None},  # no ssid: the network the radio remembers
        "period_ms": 10_000,
        "sensors": [{"type": "internal", "name": "board.temperature"}],
        "led": {"pin": 2, "inverted": False},  # pin None: no LED
        "watchdog_ms": 60_000,
        "outbox_bytes": 700_000,
        "outbox_count": 8_000,
        "ntp": None,  # a host name; None: the gateway tells the time
    }


def load(path="/config.json"):
    """(settings, problems): every key of the defaults, and what was wrong in the file."""
    settings = defaults()
    problems = []
    _lay_over(settings, _read(path, problems), problems)
    _lay_over(settings, over, problems)
    if settings["key"] == _BAD_KEY:
        # With no key at all any answer would count, and with no certificate anybody would be
        # sent to; so nothing is sent until it is mended.
        settings["key"] = settings["gateway"] = None
        settings["cable"] = False
    if settings["gateway"] == _CABLE:
        settings["gateway"], settings["cable"] = None, True
    return settings, problems


def _read(path, problems):
    try:
        with open(path) as file:
            found = json.load(file)
        if isinstance(found, dict):
            return found
        problems.append("%s: not a JSON object" % path)
    except ValueError:
        problems.append("%s: not JSON" % path)
    except OSError:
        pass  # no file: the defaults
    return {}


def _lay_over(settings, found, problems):
    for key in found:
        if key not in settings:
            problems.append("config: unknown key %s" % key)
        elif _CHECKS[key](found[key]):
            settings[key] = _merged(settings[key], found[key])
        else:
            problems.append("config: bad value for %s" % key)
            if key in ("key", "tls_cert"):
                settings["key"] = _BAD_KEY


def _merged(default, value):
    if not isinstance(default, dict):
        return value
    both = dict(default)
    both.update(value)
    return both


def _whole(low, high):
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def _none_or(check):
    return lambda v: v is None or check(v)


def _text(v):
    return isinstance(v, str) and bool(v)


def _device(v):
    return _text(v) and len(v) <= 64 and all(c in _DEVICE_CHARACTERS for c in v)


def _key(v):
    return _text(v) and len(v) == 64 and all(c in "0123456789abcdefABCDEF" for c in v)


def _url(v):
    # What post.parse takes: http(s)://HOST[:PORT][/PREFIX]; or the cable.
    if v == _CABLE:
        return True
    scheme, mark, rest = v.partition("://") if _text(v) else ("", "", "")
    place = rest.split("/")[0] if mark and scheme in ("http", "https") else ""
    host, colon, port = place.partition(":")
    return bool(host) and (port.isdigit() if colon else True)


def _base64(v):
    digits = v.rstrip("=") if _text(v) else ""
    return 0 < len(digits) <= 4096 and all(c in _BASE64_DIGITS for c in digits)


def _led(v):
    pin = v.get("pin") if isinstance(v, dict) else False
    return pin is None or _whole(0, 64)(pin)


def _wifi(v):
    return isinstance(v, dict) and all(v[k] is None or isinstance(v[k], str) for k in v)


def _sensors(v):
    return isinstance(v, list) and all(isinstance(one, dict) for one in v)


_CHECKS = {
    "device": _none_or(_device),
    "gateway": _none_or(_url),
    "tls_cert": _none_or(_base64),
    "cable": lambda v: isinstance(v, bool),
    "key": _none_or(_key),
    "wifi": _wifi,
    "period_ms": _whole(10, 7 * 24 * 3600 * 1000),
    "sensors": _sensors,
    "led": _led,
    "watchdog_ms": _whole(30_000, 3600 * 1000),
    "outbox_bytes": _whole(4096, 1 << 30),
    "outbox_count": _whole(1, 1_000_000),
    "ntp": _none_or(_text),
}
