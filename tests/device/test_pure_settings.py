import settings

_KEY = "0123456789abcdef" * 4


def _load(text):
    with open("config.json", "w") as file:
        file.write(text)
    return settings.load("config.json")


def test_without_a_file_the_defaults_hold():
    found, problems = settings.load("config.json")
    assert found == settings.defaults()
    assert problems == []


def test_the_file_stands_over_the_defaults():
    found, problems = _load('{"gateway": "http://10.0.0.2:8080", "period_ms": 5000}')
    assert found["gateway"] == "http://10.0.0.2:8080"
    assert found["period_ms"] == 5000
    assert found["watchdog_ms"] == settings.defaults()["watchdog_ms"]
    assert problems == []


def test_part_of_an_object_leaves_the_rest_of_it():
    found, problems = _load('{"led": {"pin": 5}, "wifi": {"ssid": "farm"}}')
    assert found["led"] == {"pin": 5, "inverted": False}
    assert found["wifi"] == {"ssid": "farm", "password": None}
    assert problems == []


def test_a_file_that_is_no_json_object_gives_the_defaults_and_a_message():
    for text in ("", "{", '{"gateway": ', "[1]", "null", "\x00\x01"):
        found, problems = _load(text)
        assert found == settings.defaults()
        assert len(problems) == 1, text
        assert "config.json" in problems[0]


def test_an_unknown_key_is_named_and_the_rest_is_taken():
    found, problems = _load('{"gatway": 1, "period_ms": 5000}')
    assert found["period_ms"] == 5000
    assert problems == ["config: unknown key gatway"]


def test_a_bad_value_is_named_and_its_default_stands_in():
    for key, text in (
        ("period_ms", "0"),
        ("period_ms", "true"),
        ("period_ms", '"10"'),
        ("device", '"has space"'),
        ("device", '"' + "d" * 65 + '"'),
        ("gateway", '"gateway.local"'),
        ("gateway", '"ftp://h"'),
        ("gateway", '"https://"'),
        ("gateway", '"http://"'),
        ("gateway", '"http://h:eighty"'),
        ("gateway", '"http://:80"'),
        ("gateway", '"cable"'),
        ("cable", "1"),
        ("wifi", '"farm"'),
        ("wifi", '{"ssid": 5}'),
        ("led", "2"),
        ("led", '{"pin": "D2"}'),
        ("sensors", "{}"),
        ("sensors", '["internal"]'),
        ("watchdog_ms", "5"),
        ("ntp", "1"),
    ):
        found, problems = _load(f'{{"{key}": {text}}}')
        assert problems == [f"config: bad value for {key}"], text
        assert found[key] == settings.defaults()[key]


def test_a_led_may_be_none():
    found, problems = _load('{"led": {"pin": null}}')
    assert found["led"]["pin"] is None
    assert problems == []


def test_a_gateway_on_the_cable_only_is_no_address():
    found, problems = _load('{"gateway": "cable:"}')
    assert (found["gateway"], found["cable"], problems) == (None, True, [])


def test_with_a_bad_key_nothing_is_sent_over_the_cable_either():
    for gateway in ("cable:", "http://h"):
        found, _ = _load(f'{{"cable": true, "key": "short", "gateway": "{gateway}"}}')
        assert (found["gateway"], found["cable"]) == (None, False)


def test_with_a_bad_key_nothing_is_sent_rather_than_any_answer_believed():
    for order in ('"key": "short", "gateway": "http://h"', '"gateway": "http://h", "key": "short"'):
        found, problems = _load("{" + order + "}")
        assert found["key"] is None
        assert found["gateway"] is None
        assert problems == ["config: bad value for key"]


def test_what_the_starter_gives_wins():
    settings.over.update({"gateway": "http://127.0.0.1:9", "key": _KEY})
    try:
        found, _ = _load('{"gateway": "http://h", "key": "short"}')
        assert found["gateway"] == "http://127.0.0.1:9"
        assert found["key"] == _KEY
    finally:
        settings.over.clear()


def test_a_gateway_may_be_asked_over_https_with_a_certificate_of_its_own():
    found, problems = _load('{"gateway": "https://h:8443/field", "tls_cert": "MIIBXz+/aa=="}')
    assert problems == []
    assert (found["gateway"], found["tls_cert"]) == ("https://h:8443/field", "MIIBXz+/aa==")


def test_with_a_bad_certificate_nothing_is_sent_rather_than_to_anybody():
    for text in ('""', '"-----BEGIN"', "5", '"' + "A" * 4097 + '"'):
        found, problems = _load(f'{{"gateway": "https://h", "tls_cert": {text}}}')
        assert problems == ["config: bad value for tls_cert"], text
        assert found["gateway"] is None
