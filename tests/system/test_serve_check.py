"""`check`: tells what `serve` would meet, and leaves everything as it is."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


@pytest.fixture
def check(gateway_command, tmp_path):
    """Run `check` on the database in tmp_path; return exit code and what it printed."""

    def run(*arguments: str, environ=None) -> tuple[int, str]:
        there = ("check", "--db", str(tmp_path / "fieldpost.db"))
        code, out, err = gateway_command(*there, *arguments, environ=environ).end()
        assert "Traceback" not in err
        return code, out + err

    return run


@pytest.fixture
def used(serve, gateway_command, tmp_path) -> Path:
    """Give a folder in which a gateway has run and a device is registered."""
    gateway_command("devices", "add", "shed", "--db", str(tmp_path / "fieldpost.db")).end()
    serve().end(signal.SIGTERM)
    return tmp_path


def test_before_the_first_start_all_is_well_and_nothing_is_made(check, tmp_path):
    code, said = check()
    assert code == 0
    assert "not there yet" in said
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_well_and_stays_as_it_is(check, used):
    before = everything(used)
    code, said = check()
    assert (code, "BAD" in said) == (0, False)
    assert "quick_check says ok" in said
    assert everything(used) == before


def test_a_database_that_a_gateway_has_open_is_well(check, serve, used):
    serve()
    code, said = check()
    assert (code, "BAD" in said) == (0, False)


def test_every_setting_is_shown_with_its_origin(check, tmp_path):
    file = tmp_path / "x.toml"
    file.write_text("body_timeout_s = 3.5")
    _, said = check("--config", str(file), "--open", environ={"FIELDPOST_PORT": "81"})
    lines = {
        line.split(" = ")[0].strip(): line.split() for line in said.splitlines() if "=" in line
    }
    assert lines["port"][2:] == ["81", "FIELDPOST_PORT"]
    assert lines["open"][2:] == ["True", "--open"]
    assert lines["body_timeout_s"][2:4] == ["3.5", "body_timeout_s"]
    assert lines["host"][2:] == ["127.0.0.1", "default"]


def another_programs(folder: Path) -> None:
    (folder / "fieldpost.db").unlink()
    with closing(sqlite3.connect(folder / "fieldpost.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")


def newer(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "fieldpost.db")) as connection:
        connection.execute("PRAGMA user_version = 9999")


def damaged(folder: Path) -> None:
    file = folder / "fieldpost.db"
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xff" * 8192 + whole[12288:])


def no_database_at_all(folder: Path) -> None:
    (folder / "fieldpost.db").write_text("Dear diary, " * 500)


def readable_key(folder: Path) -> None:
    (folder / "master.key").chmod(0o644)


def wrong_key(folder: Path) -> None:
    (folder / "master.key").write_text("not a key")


def lost_key(folder: Path) -> None:
    (folder / "master.key").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (another_programs, "belongs to another program"),
        (newer, "schema 9999"),
        (damaged, "database: "),
        (no_database_at_all, "not a database"),
        (readable_key, "chmod 600"),
        (wrong_key, "not 64 hex digits"),
        (lost_key, "bring it back"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_what_is_wrong_is_said_and_left_alone(check, used, spoil, said):
    spoil(used)
    before = everything(used)
    code, found = check()
    assert code == 2
    [bad] = [line for line in found.splitlines() if line.startswith("BAD")]
    assert said in bad
    assert everything(used) == before


def test_a_disk_that_is_too_full_is_said(check):
    code, said = check("--min-free-bytes", str(2**50))
    assert code == 2
    assert "BAD disk: " in said


def test_a_certificate_that_is_not_there_is_said(check):
    code, said = check("--tls-cert", "/none.pem", "--tls-key", "/none.pem")
    assert code == 2
    assert "BAD certificate: " in said


def in_database(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "fieldpost.db", isolation_level=None)) as connection:
        connection.execute(sql)


def another_key(folder: Path) -> None:
    (folder / "master.key").write_text("0" * 64)


def broken_reference(folder: Path) -> None:
    in_database(folder, "INSERT INTO sensor (device_id, name) VALUES (99, 's')")


def reading_of_tomorrow(folder: Path) -> None:
    in_database(folder, "INSERT INTO sensor (id, device_id, name) SELECT 1, id, 's' FROM device")
    in_database(
        folder,
        "INSERT INTO reading (reading_id, device_id, sensor_id, value, at_ms, clock,"
        " received_at_ms) SELECT 'x', id, 1, 1.0, 0, 'none', unixepoch() * 1000 + 86400000"
        " FROM device",
    )


def old_backup(folder: Path) -> None:
    in_database(folder, "INSERT INTO fact VALUES ('last_backup', '4096', 1600000000000)")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (another_key, "accept-key"),
        (broken_reference, "row 1 of sensor refers to a row of device"),
        (reading_of_tomorrow, "came 23 hours after"),
        (old_backup, "days ago: see why"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_what_is_wrong_inside_is_said_with_what_to_do(check, used, spoil, said):
    spoil(used)
    code, found = check()
    assert code == 2
    [bad] = [line for line in found.splitlines() if line.startswith("BAD")]
    assert said in bad


def test_a_gateway_does_not_start_with_another_key_until_a_person_accepts_it(
    serve, gateway_command, used
):
    another_key(used)
    there = ("--db", str(used / "fieldpost.db"))
    code, _, err = gateway_command("serve", "--port", "0", *there).end()
    assert (code, "accept-key" in err) == (2, True)
    code, _, err = gateway_command("devices", "add", "barn", *there).end()
    assert (code, "accept-key" in err) == (2, True)
    code, out, _ = gateway_command("accept-key", *there).end()
    assert (code, "each of 1 devices" in out) == (0, True)
    serve()
