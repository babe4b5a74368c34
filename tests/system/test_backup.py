"""`backup`: a copy made under load, that a gateway goes on from."""

import shutil
import signal
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.test_serve import post, stored
from tests.system.test_serve_devices import signed_heartbeat


@pytest.fixture
def backup(gateway_command, tmp_path):
    """Back the database in tmp_path up; return exit code and all that was said."""

    def run(target: Path, *flags: str) -> tuple[int, str]:
        there = ("--db", str(tmp_path / "fieldpost.db"), *flags)
        code, out, err = gateway_command("backup", str(target), *there).end()
        assert "Traceback" not in err
        return code, out + err

    return run


@pytest.fixture
def shelf(tmp_path) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    return folder


class Sender(threading.Thread):
    """Sends readings one after the other; knows which were acknowledged."""

    def __init__(self, gateway) -> None:
        super().__init__()
        self._gateway = gateway
        self.acknowledged: list[str] = []
        self.has_begun, self.ends = threading.Event(), threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            n = len(self.acknowledged) + 1
            assert post(self._gateway, n)["stored"] == 1
            self.acknowledged.append(f"b-7f3a17c21-{n}")
            if n == 50:
                self.has_begun.set()


def test_a_copy_made_under_load_holds_all_that_was_acknowledged_before(serve, backup, shelf):
    sender = Sender(serve("--open"))
    sender.start()
    assert sender.has_begun.wait(30)
    before = list(sender.acknowledged)
    code, said = backup(shelf / "copy.db")
    after = len(sender.acknowledged)
    sender.ends.set()
    sender.join()
    assert code == 0, said
    assert after > len(before), "nothing was stored meanwhile: the copy held up the gateway"
    assert [file.name for file in shelf.iterdir()] == ["copy.db"]
    assert stat.S_IMODE((shelf / "copy.db").stat().st_mode) == 0o600
    copied = stored(shelf / "copy.db")
    assert set(before) <= copied <= {f"b-7f3a17c21-{n}" for n in range(1, after + 2)}


def test_a_gateway_goes_on_from_a_copy_and_the_master_key(
    serve, gateway_command, backup, shelf, tmp_path
):
    _, key, _ = gateway_command("devices", "add", "shed", "--db", f"{tmp_path}/fieldpost.db").end()
    gateway = serve("--open")
    post(gateway, 1)
    code, said = backup(shelf / "fieldpost.db")
    assert code == 0
    assert "does not hold master.key" in said
    gateway.end(signal.SIGTERM)
    there = ("serve", "--port", "0", "--db", str(shelf / "fieldpost.db"), "--open")
    code, _, err = gateway_command(*there).end()
    assert code == 2
    assert "master.key is missing" in err
    shutil.copy(tmp_path / "master.key", shelf)
    gateway = gateway_command(*there)
    gateway.address = gateway.wait_for(r"listening on (\S+)/ ")[1]
    assert signed_heartbeat(gateway, bytes.fromhex(key)) == 200
    assert (post(gateway, 1)["duplicates"], post(gateway, 2)["stored"]) == (1, 1)


def test_the_last_backup_is_written_down(serve, backup, shelf, tmp_path):
    serve("--open").end(signal.SIGTERM)
    assert backup(shelf / "copy.db")[0] == 0
    with closing(sqlite3.connect(tmp_path / "fieldpost.db")) as connection:
        sql = "SELECT value, at_ms FROM fact WHERE name = 'last_backup'"
        ((size, at_ms),) = connection.execute(sql)
    assert int(size) == (shelf / "copy.db").stat().st_size
    assert at_ms > 1_764_000_000_000


def test_a_file_that_is_there_is_replaced_only_by_force(serve, backup, shelf):
    serve("--open").end(signal.SIGTERM)
    (shelf / "copy.db").write_text("precious")
    code, said = backup(shelf / "copy.db")
    assert (code, "--force" in said) == (2, True)
    assert (shelf / "copy.db").read_text() == "precious"
    assert backup(shelf / "copy.db", "--force")[0] == 0
    assert stored(shelf / "copy.db") == set()


def test_a_database_of_an_older_version_is_copied_as_it_is(backup, shelf, tmp_path):
    from gateway.store import migrate

    with closing(sqlite3.connect(tmp_path / "fieldpost.db", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {migrate.APPLICATION_ID}")
        connection.executescript(migrate.migrations()[0][1])
        connection.execute("PRAGMA user_version = 1")
    assert backup(shelf / "copy.db")[0] == 0
    for file in (tmp_path / "fieldpost.db", shelf / "copy.db"):
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_damaged_database_gives_no_copy(serve, backup, shelf, tmp_path):
    gateway = serve("--open")
    for n in range(1, 400):
        post(gateway, n)
    gateway.end(signal.SIGTERM)
    file = tmp_path / "fieldpost.db"
    with closing(sqlite3.connect(file)) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'reading_by_device'"
        (page,) = connection.execute(sql).fetchone()
    whole = bytearray(file.read_bytes())
    whole[(page - 1) * 4096 : page * 4096] = bytes(4096)
    file.write_bytes(whole)
    code, said = backup(shelf / "copy.db")
    assert (code, list(shelf.iterdir())) == (2, [])
    assert "damaged" in said or "malformed" in said


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("fieldpost.db", "is the database itself"),
        ("fieldpost.db-wal", "is the database itself"),
        ("other-name.db", "is the database itself"),
        ("shelf", "is a folder"),
        ("nowhere/copy.db", "there is no folder"),
    ],
)
def test_what_can_not_be_is_refused_also_by_force(serve, backup, shelf, tmp_path, target, said):
    serve("--open").end(signal.SIGTERM)
    (tmp_path / "other-name.db").symlink_to(tmp_path / "fieldpost.db")
    code, found = backup(tmp_path / target, "--force")
    assert code == 2
    assert said in found


def test_without_a_database_nothing_is_made(gateway_command, tmp_path):
    for db, said in ((":memory:", "in memory"), (f"{tmp_path}/none.db", "there is no database")):
        code, _, err = gateway_command("backup", f"{tmp_path}/copy.db", "--db", db).end()
        assert (code, said in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
