"""Settings: where they come from, which wins, and what is said of a wrong one."""

from pathlib import Path

import pytest

from gateway.config import Config, expected, flag, settings, variable
from gateway.errors import Misconfigured


@pytest.fixture
def toml(tmp_path: Path):
    def write(text: str) -> Path:
        file = tmp_path / "fieldpost.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def refusal(*given, **also) -> str:
    with pytest.raises(Misconfigured) as caught:
        Config.load(*given, **also)
    return str(caught.value)


def test_nothing_said_gives_the_defaults():
    assert Config.load({}, {}) == Config()


def test_the_file_wins_over_the_default_the_environment_over_it_and_the_flag_over_all(toml):
    file = toml("port = 1\nhost = 'from-file'\ndb = 'from-file.db'")
    environ = {"FIELDPOST_PORT": "2", "FIELDPOST_HOST": "from-environment"}
    config = Config.load({"port": "3"}, environ, file)
    assert (config.port, config.host, config.db) == (3, "from-environment", "from-file.db")


def test_each_value_knows_where_it_was_said(toml):
    file = toml("log_level = 'debug'")
    config = Config.load({"open": True}, {"FIELDPOST_PORT": "2"}, file)
    assert config.sources == {
        "log_level": f"log_level in {file}",
        "port": "FIELDPOST_PORT",
        "open": "--open",
    }


def test_a_variable_names_the_file_when_no_flag_does(toml, tmp_path):
    file = toml("port = 5")
    assert Config.load({}, {"FIELDPOST_CONFIG": str(file)}).port == 5
    other = tmp_path / "other.toml"
    other.write_text("port = 6")
    assert Config.load({}, {"FIELDPOST_CONFIG": str(file)}, other).port == 6


def test_other_programs_variables_are_left_alone():
    assert Config.load({}, {"PORT": "9", "HOST": "x", "FIELD": "y"}) == Config()


def test_an_unknown_key_names_the_nearest(toml):
    file = toml("prot = 8080")
    assert refusal({}, {}, file) == f"prot in {file} is not a setting; did you mean port?"


def test_the_token_that_tools_ask_with_is_no_setting_and_no_mistake():
    assert Config.load({}, {"FIELDPOST_TOKEN": "0" * 64}) == Config()


def test_an_unknown_variable_names_the_nearest():
    said = refusal({}, {"FIELDPOST_BODY_TIMEOUT": "1"})
    assert said == "FIELDPOST_BODY_TIMEOUT is not a setting; did you mean FIELDPOST_BODY_TIMEOUT_S?"


def test_a_key_that_is_like_none_lists_them_all(toml):
    said = refusal({}, {}, toml("[zzzz]\nqqqq = 1"))
    assert all(setting.name in said for setting in settings())


@pytest.mark.parametrize(
    "line",
    [
        "port = '8080'",
        "port = true",
        "port = 8080.0",
        "port = -1",
        "port = 65536",
        "open = 1",
        "open = 'yes'",
        "db = 3",
        "db = ''",
        "db = ['a', 'b']",
        'db = "a\\u0000b"',
        "log_level = 'loud'",
        "stop_timeout_s = 'soon'",
        "stop_timeout_s = nan",
        "stop_timeout_s = 60",
        "body_timeout_s = 2026-11-30",
    ],
)
def test_a_wrong_value_in_a_file_says_what_would_do(toml, line):
    file = toml(line)
    name = line.split()[0]
    [setting] = [s for s in settings() if s.name == name]
    said = refusal({}, {}, file)
    assert said.startswith(f"{name} in {file} is ")
    assert f"; give {expected(setting)} (" in said


@pytest.mark.parametrize(
    ("name", "text"),
    [("port", "http"), ("port", ""), ("port", "80 80"), ("open", "maybe"), ("open", ""),
     ("stop_timeout_s", "soon"), ("db", ""), ("log_format", "JSON")],
)  # fmt: skip
def test_a_wrong_text_is_refused_from_variable_and_flag_alike(name, text):
    assert refusal({}, {variable(name): text}).startswith(f"{variable(name)} is {text!r}; give ")
    assert refusal({name: text}, {}).startswith(f"{flag(name)} is {text!r}; give ")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("true", True), ("Yes", True), ("on", True), ("0", False), ("FALSE", False)],
)
def test_yes_and_no_have_their_usual_words(text, value):
    assert Config.load({}, {"FIELDPOST_OPEN": text}).open is value


def test_a_whole_number_of_seconds_will_do(toml):
    assert Config.load({}, {}, toml("stop_timeout_s = 2")).stop_timeout_s == 2


def test_a_file_that_is_no_toml_says_where(toml):
    file = toml("port 8080")
    assert refusal({}, {}, file).startswith(f"configuration {file} is not TOML: ")
    file.write_bytes(b"db = '\xff'")
    assert refusal({}, {}, file).startswith(f"configuration {file} is not TOML: ")


def test_a_file_that_is_not_there_is_named(tmp_path):
    file = tmp_path / "none.toml"
    assert (
        refusal({}, {}, file) == f"configuration {file} can not be read: No such file or directory"
    )


@pytest.mark.parametrize("half", [{"tls_cert": "a.pem"}, {"tls_key": "a.pem"}])
def test_a_certificate_needs_its_key(half):
    assert refusal(half, {}) == "give both --tls-cert and --tls-key, or neither"


def test_open_to_the_network_is_open_to_this_machine_too():
    config = Config.load({"open_lan": True}, {})
    assert config.open
    assert config.sources["open"] == "--open-lan"


def test_a_config_made_by_hand_is_checked_as_well():
    with pytest.raises(Misconfigured, match="port is 70000"):
        Config(port=70000)


def test_the_keys_stand_beside_the_database():
    assert Config(db="a/b/c.db").folder == Path("a/b")
    assert Config(db=":memory:").folder is None


# --- tables of the file ---


def test_tables_become_what_the_jobs_are_made_of(toml):
    file = toml("""
        db = "there/fieldpost.db"
        [smtp]
        host = "mail.example"
        sender = "gateway@example"
        [webhook]
        key = "00112233445566778899aabbccddeeff"
        [calibration.shed."dht22.temperature"]
        offset = -0.5
        [[schedule]]
        name = "nightly"
        cron = "0 3 * * *"
        time_zone = "Europe/Lisbon"
        kind = "daily_report"
        args = { date = "{day_before}" }
    """)
    config = Config.load({}, {}, file)
    assert config.for_jobs() == {
        "folder": "there",
        "min_free_bytes": 64 * 1024**2,
        "smtp": {"host": "mail.example", "sender": "gateway@example", "port": None, "user": None,
                 "password": None, "tls": "starttls"},
        "webhook_key": "00112233445566778899aabbccddeeff",
        "calibration": {"shed": {"dht22.temperature": {"scale": 1.0, "offset": -0.5}}},
    }  # fmt: skip
    [nightly] = config.schedule
    assert (nightly.name, nightly.args) == ("nightly", {"date": "{day_before}"})


def test_without_tables_the_jobs_have_nothing_to_go_by():
    told = Config().for_jobs()
    assert (told["smtp"], told["webhook_key"], told["calibration"]) == (None, None, {})


def test_in_memory_the_jobs_have_no_folder():
    assert Config(db=":memory:").for_jobs()["folder"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[smtp]\nhost = 'h'", "smtp in {}: Object missing required field `sender`"),
        ("[smtp]\nhost = 'h'\nsender = 's'\nport = 0", "smtp.port in {}: Expected `int` >= 1"),
        ("[smtp]\nhost = 'h'\nsender = 's'\nprot = 1", "unknown field `prot`"),
        ("[smtp]\nhost = 'h'\nsender = 's'\ntls = 'yes'", "smtp.tls in {}: Invalid enum value"),
        ("smtp = 'h'", "smtp in {}: Expected `object`, got `str`"),
        ("[webhook]\nkey = 'secret'", "webhook.key in {}: "),
        ("[calibration.b.t]\nscale = 'x'", "calibration[...][...].scale in {}: "),
        ("[calibration.b.t]\nscale = inf", "scale and offset are finite numbers"),
        ("[[schedule]]\nname = 'n'\ncron = '* * * * *'", "schedule[0] in {}: Object missing"),
        ("[[schedule]]\nname = 'a b'\ncron = '*'\nkind = 'k'", "schedule[0].name in {}: "),
        (2 * "[[schedule]]\nname = 'n'\ncron = '*'\nkind = 'k'\n", "there are two called n"),
    ],
)
def test_a_wrong_table_is_named_with_its_key(toml, text, said):
    file = toml(text)
    assert said.format(file) in refusal({}, {}, file)


def test_a_table_can_not_be_said_in_the_environment():
    assert "smtp is a table of the file" in refusal({}, {"FIELDPOST_SMTP": "mail.example"})


@pytest.mark.parametrize(
    ("flags", "environ", "toml"),
    [
        ({"serial": ["/dev/ttyUSB0", "auto"]}, {}, ""),
        ({}, {"FIELDPOST_SERIAL": "/dev/ttyUSB0, auto"}, ""),
        ({}, {}, 'serial = ["/dev/ttyUSB0", "auto"]'),
    ],
)
def test_a_list_is_flags_or_a_text_with_commas_or_a_list_of_the_file(
    flags, environ, toml, tmp_path
):
    file = tmp_path / "fieldpost.toml"
    file.write_text(toml)
    assert Config.load(flags, environ, file).serial == ("/dev/ttyUSB0", "auto")


@pytest.mark.parametrize(
    "toml", ["serial = 3", 'serial = ["a", 3]', 'serial = [""]', "serial=true"]
)
def test_a_list_of_anything_but_texts_is_refused(toml, tmp_path):
    file = tmp_path / "fieldpost.toml"
    file.write_text(toml)
    with pytest.raises(Misconfigured, match=r"serial .* give texts"):
        Config.load({}, {}, file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("readings_days = 0.5", "readings_days"),
        ("readings_days = 30\nhourly_days = 20", "or longer"),
        ("hourly_days = 30\ndaily_days = 20", "or longer"),
        ("database_bytes = 1000", "database_bytes"),
        ("readings_day = 30", "readings_day"),
    ],
)
def test_a_retention_that_can_not_be_is_refused(tmp_path, text, said):
    file = tmp_path / "x.toml"
    file.write_text(f"[retention]\n{text}\n")
    with pytest.raises(Misconfigured, match=said):
        Config.load({}, {}, file)
