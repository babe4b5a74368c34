"""The gateway as a process: how it starts, how it stops, and what it says when it can not start."""

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

STOP_S = 10


def get(address: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.status, answer.read()


def host_and_port(gateway) -> tuple[str, int]:
    host, port = gateway.address.removeprefix("http://").split(":")
    return host, int(port)


def body(n: int) -> bytes:
    reading = {"id": f"b-7f3a17c21-{n}", "sensor": "t", "value": n, "at_ms": 1764529200000 + n}
    return json.dumps({"device": "b", "readings": [reading]}).encode()


def post(gateway, n: int) -> dict[str, object]:
    url, headers = gateway.address + "/v1/readings", {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body(n), headers)) as answer:
        return json.load(answer)


def stored(db: Path) -> set[str]:
    with closing(sqlite3.connect(db)) as connection:
        return {row[0] for row in connection.execute("SELECT reading_id FROM readings")}


def test_the_printed_port_is_the_real_one_and_answers(serve):
    gateway = serve()
    assert not gateway.address.endswith(":0")
    assert get(gateway.address + "/healthz")[0] == 200


def test_a_signal_stops_it_and_nothing_is_left_beside_the_database(serve, tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT):
        gateway = serve("--open")
        post(gateway, 1)
        code, _out, err = gateway.end(number)
        assert (code, "Traceback" in err) == (0, False)
        assert not (tmp_path / "fieldpost.db-wal").exists()


def test_an_idle_client_does_not_hold_it_up(serve):
    gateway = serve()
    client = http.client.HTTPConnection(*host_and_port(gateway))
    client.request("GET", "/healthz")
    client.getresponse().read()
    begun = time.monotonic()
    assert gateway.end(signal.SIGTERM)[0] == 0
    assert time.monotonic() - begun < STOP_S / 4
    client.close()


def test_a_request_that_never_ends_holds_it_up_no_longer_than_it_may(serve):
    gateway = serve("--open")
    with closing(socket.create_connection(host_and_port(gateway))) as client:
        client.sendall(
            b"POST /v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
        )
        get(gateway.address + "/healthz")  # it has seen the other one by now
        begun = time.monotonic()
        code, _out, err = gateway.end(signal.SIGTERM)
    assert (code, "Traceback" in err) == (0, False)
    assert time.monotonic() - begun < STOP_S


def test_a_second_signal_ends_it_at_once(serve):
    gateway = serve("--open")
    with closing(socket.create_connection(host_and_port(gateway))) as client:
        client.sendall(
            b"POST /v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
        )
        get(gateway.address + "/healthz")
        gateway.process.send_signal(signal.SIGTERM)
        gateway.wait_for("stopping")
        begun = time.monotonic()
        code, _out, err = gateway.end(signal.SIGTERM)
    assert (code, "stopped at once" in err) == (0, True)
    assert time.monotonic() - begun < 1


def test_what_was_answered_before_a_stop_under_load_is_in_the_database(serve, tmp_path):
    gateway = serve("--open")
    acknowledged: set[str] = set()
    enough = threading.Event()

    def deliver(worker: int) -> None:
        client = http.client.HTTPConnection(*host_and_port(gateway))
        try:
            for n in range(worker * 10_000 + 1, (worker + 1) * 10_000):
                headers = {"Content-Type": "application/json"}
                client.request("POST", "/v1/readings", body(n), headers)
                answer = client.getresponse()
                answer.read()
                if answer.status == 200:
                    acknowledged.add(f"b-7f3a17c21-{n}")
                if len(acknowledged) > 100:
                    enough.set()
        except (OSError, http.client.HTTPException):
            pass  # it stopped
        finally:
            client.close()

    workers = [threading.Thread(target=deliver, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    assert enough.wait(30)
    assert gateway.end(signal.SIGTERM)[0] == 0
    for worker in workers:
        worker.join()
    assert len(acknowledged) > 100
    assert acknowledged <= stored(tmp_path / "fieldpost.db")


# --- what it says at the start ---


def notices(gateway) -> str:
    return gateway.end(signal.SIGTERM)[1]


def test_without_a_key_and_not_open_it_says_how_to_add_a_device(serve, tmp_path):
    assert f"devices add NAME --db {tmp_path / 'fieldpost.db'}" in notices(serve())


def test_with_a_device_it_does_not_say_so(serve, gateway_command, tmp_path):
    gateway_command("devices", "add", "b", "--db", str(tmp_path / "fieldpost.db")).end()
    assert "devices add" not in notices(serve())


def test_open_says_to_whom(serve):
    assert "open to this machine" in notices(serve("--open"))
    assert "OPEN TO THE NETWORK" in notices(serve("--open-lan"))
    assert "open to this machine" in notices(serve("--open", "--host", "0.0.0.0"))


def test_a_database_in_memory_works_and_says_that_it_is_gone_later(serve, tmp_path):
    gateway = serve("--open", "--db", ":memory:")
    assert post(gateway, 1)["stored"] == 1
    assert "in memory" in notices(gateway)
    assert not list(tmp_path.iterdir())


def test_without_workers_it_says_that_jobs_wait(serve):
    assert "takes in only" in notices(serve("--workers", "0"))
    assert "takes in only" not in notices(serve())


def test_a_schedule_that_asks_for_what_there_is_not_is_told_at_the_start(gateway_command, tmp_path):
    file = tmp_path / "fieldpost.toml"
    file.write_text("[[schedule]]\nname = 'n'\ncron = '0 3 * * *'\nkind = 'dance'")
    there = ("--port", "0", "--db", str(tmp_path / "f.db"))
    said = refusal(gateway_command("serve", "--config", str(file), *there))
    assert "schedule n: there is no kind of job called 'dance'" in said


def test_the_environment_and_a_file_set_what_flags_do_not(serve, tmp_path):
    file = tmp_path / "fieldpost.toml"
    file.write_text("log_format = 'json'\nlog_level = 'error'")
    gateway = serve("--config", str(file), environ={"FIELDPOST_LOG_LEVEL": "info"})
    _code, _out, err = gateway.end(signal.SIGTERM)
    assert json.loads(err)["message"].startswith("stopping")


# --- what keeps it from starting: one line, exit code 2, nothing touched ---


def refusal(gateway) -> str:
    code, out, err = gateway.end()
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    assert err.startswith("fieldpost: ")
    return err


def test_a_port_in_use_is_named_and_the_database_is_not_made(gateway_command, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        there = str(tmp_path / "f.db")
        said = refusal(gateway_command("serve", "--port", port, "--db", there))
    assert f"port {port} on 127.0.0.1 is in use" in said
    assert "--port" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("host", "said"),
    [("192.0.2.1", "no address of this machine"), ("no.such.host.invalid", "not known here")],
)
def test_a_host_that_is_not_ours_is_said(gateway_command, tmp_path, host, said):
    gateway = gateway_command("serve", "--host", host, "--port", "0", "--db", str(tmp_path / "f"))
    assert said in refusal(gateway)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);")


def text_file(path: Path) -> None:
    path.write_text("Dear diary, " * 500)


@pytest.mark.parametrize("make", [foreign_database, text_file])
def test_a_file_that_is_not_ours_is_refused_untouched(gateway_command, tmp_path, make):
    there = tmp_path / "theirs"
    make(there)
    before = (there.read_bytes(), there.stat())
    assert str(there) in refusal(gateway_command("serve", "--port", "0", "--db", str(there)))
    assert (there.read_bytes(), there.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns)
    assert list(tmp_path.iterdir()) == [there]


def test_a_database_of_a_newer_version_is_refused(gateway_command, serve, tmp_path):
    serve().end(signal.SIGTERM)
    with closing(sqlite3.connect(tmp_path / "fieldpost.db")) as connection:
        connection.execute("PRAGMA user_version = 9999")
    there = str(tmp_path / "fieldpost.db")
    assert "newer Fieldpost" in refusal(gateway_command("serve", "--port", "0", "--db", there))


def test_a_start_that_fails_half_way_closes_what_was_open(gateway_command, tmp_path):
    (tmp_path / "master.key").write_text("not a key")
    there = str(tmp_path / "f.db")
    assert "master.key" in refusal(gateway_command("serve", "--port", "0", "--db", there))
    assert not (tmp_path / "f.db-wal").exists()


def test_an_unknown_flag_names_the_nearest(gateway_command):
    assert "did you mean --port?" in refusal(gateway_command("serve", "--prot", "0"))


def test_a_wrong_value_is_said_without_a_traceback(gateway_command):
    assert "--port is 'http'" in refusal(gateway_command("serve", "--port", "http"))


# --- HTTPS ---


@pytest.fixture(scope="module")
def pem(tmp_path_factory) -> tuple[str, str]:
    if not shutil.which("openssl"):
        pytest.skip("no openssl here to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    chain, key = str(folder / "chain.pem"), str(folder / "key.pem")
    make = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]
    make += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make, *names, "-keyout", key, "-out", chain], check=True, capture_output=True)
    return chain, key


def test_it_serves_https_when_it_has_a_certificate(serve, pem):
    chain, key = pem
    gateway = serve("--tls-cert", chain, "--tls-key", key)
    assert gateway.address.startswith("https://")
    trusting = ssl.create_default_context(cafile=chain)
    with urllib.request.urlopen(gateway.address + "/healthz", context=trusting) as answer:
        assert answer.status == 200


def with_a_password(key: str) -> str:
    locked = key.replace("key.pem", "locked.pem")
    lock = ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked]
    subprocess.run(lock, check=True, capture_output=True)
    return locked


@pytest.mark.parametrize(
    "spoil", [with_a_password, lambda key: key.replace("key", "chain"), str.upper]
)
def test_a_certificate_that_can_not_be_used_is_said_before_anything_is_made(
    gateway_command, tmp_path, pem, spoil
):
    chain, key = pem
    there = str(tmp_path / "f.db")
    gateway = gateway_command("serve", "--db", there, "--tls-cert", chain, "--tls-key", spoil(key))
    assert "--tls-key" in refusal(gateway)
    assert not os.path.exists(there)


def test_a_lost_master_key_is_told_and_not_made_anew(gateway_command, tmp_path: Path) -> None:
    """A new one would turn away every board that has a key."""
    database = ("--db", str(tmp_path / "fieldpost.db"))
    assert gateway_command("devices", "add", "shed", *database).end()[0] == 0
    (tmp_path / "master.key").unlink()
    code, _, told = gateway_command("serve", "--port", "0", *database).end()
    assert code == 2
    assert "master.key is missing" in told
    assert not (tmp_path / "master.key").exists()


def test_a_damaged_database_is_told_until_a_person_closes_the_alarm(
    serve, gateway_command, tmp_path
):
    path = tmp_path / "fieldpost.db"
    database = ("--db", str(path))
    gateway_command("devices", "add", "b", *database).end()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    gateway = serve("--open")
    status = json.load(urllib.request.urlopen(f"{gateway.address}/v1/status"))
    assert not status["ok"]
    assert status["alarms"][0]["kind"] == "database_damaged"
    _, listed, _ = gateway_command("alarms", "list", "--json", *database).end()
    alarm = json.loads(listed)[0]
    assert (tmp_path / alarm["subject"]).exists()
    assert gateway_command("alarms", "close", str(alarm["id"]), *database).end()[0] == 0
    assert json.load(urllib.request.urlopen(f"{gateway.address}/v1/status"))["alarms"] == []
    code, _, told = gateway_command("alarms", "close", str(alarm["id"]), *database).end()
    assert code == 2
    assert "no open alarm" in told


def test_devices_add_does_not_make_a_lost_master_key_anew(gateway_command, tmp_path):
    database = ("--db", str(tmp_path / "fieldpost.db"))
    gateway_command("devices", "add", "a", *database).end()
    (tmp_path / "master.key").unlink()
    code, _, told = gateway_command("devices", "add", "b", *database).end()
    assert code == 2
    assert "master.key is missing" in told
