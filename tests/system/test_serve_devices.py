"""`devices`: a board's key, whether a gateway runs on the database or not."""

import hashlib
import hmac
import http.client
import json
import re
import stat

import pytest

from gateway import registry
from gateway.config import Config
from gateway.errors import Misconfigured

BODY = b'{"device":"shed","readings":[]}'


def signed_heartbeat(gateway, key: bytes) -> int:
    nonce = "0" * 32
    lines = ["fieldpost-request-1", "POST", "/v1/readings", "shed", nonce]
    told = "\n".join([*lines, hashlib.sha256(BODY).hexdigest()]).encode()
    signature = hmac.new(key, told, "sha256").hexdigest()
    headers = {
        "Content-Type": "application/json",
        "Authorization": f'Fieldpost device="shed", nonce="{nonce}", signature="{signature}"',
    }
    client = http.client.HTTPConnection(gateway.address.removeprefix("http://"), timeout=10)
    try:
        client.request("POST", "/v1/readings", BODY, headers)
        answer = client.getresponse()
        answer.read()
        return answer.status
    finally:
        client.close()


def test_add_prints_the_key_alone_on_stdout_and_where_to_put_it_beside(gateway_command, tmp_path):
    code, out, err = gateway_command("devices", "add", "shed", "--db", str(tmp_path / "f")).end()
    assert code == 0
    assert re.fullmatch(r"[0-9a-f]{64}\n", out)
    assert "config.json" in err
    assert stat.S_IMODE((tmp_path / "master.key").stat().st_mode) == 0o600


def test_add_as_json_names_the_device(gateway_command, tmp_path):
    there = str(tmp_path / "f")
    _, out, _ = gateway_command("devices", "add", "shed", "--db", there, "--json").end()
    line = json.loads(out)
    assert (line["device"], len(line["key"])) == ("shed", 64)


def test_adding_again_gives_the_same_key_and_another_name_another(gateway_command, tmp_path):
    there = ("--db", str(tmp_path / "f"))
    keys = [gateway_command("devices", "add", n, *there).end()[1] for n in ("a", "a", "b")]
    assert keys[0] == keys[1] != keys[2]


def test_a_key_is_believed_by_a_gateway_that_runs_already(gateway_command, serve, tmp_path):
    gateway = serve()
    assert signed_heartbeat(gateway, bytes(32)) == 401
    there = str(tmp_path / "fieldpost.db")
    _, out, _ = gateway_command("devices", "add", "shed", "--db", there).end()
    assert signed_heartbeat(gateway, bytes.fromhex(out)) == 200
    assert signed_heartbeat(gateway, bytes(32)) == 401


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a/b", "é", "a\n"])
async def test_a_name_that_is_none_is_refused_and_nothing_made(tmp_path, name):
    with pytest.raises(Misconfigured, match="is no name for a device"):
        await registry.add(Config(db=str(tmp_path / "f")), name)
    assert not list(tmp_path.iterdir())


def test_a_device_in_memory_makes_no_sense(gateway_command):
    assert gateway_command("devices", "add", "shed", "--db", ":memory:").end()[0] == 2


def test_list_tells_who_is_registered(gateway_command, tmp_path):
    there = ("--db", str(tmp_path / "f"))
    for name in ("shed", "attic"):
        gateway_command("devices", "add", name, *there).end()
    _, out, _ = gateway_command("devices", "list", *there).end()
    assert [line.split()[0] for line in out.splitlines()] == ["attic", "shed"]
    _, out, _ = gateway_command("devices", "list", *there, "--json").end()
    assert [(row["name"], row["generation"]) for row in json.loads(out)] == [
        ("attic", 1),
        ("shed", 1),
    ]


def test_list_makes_no_database_of_a_slip_in_the_path(gateway_command, tmp_path):
    code, _, err = gateway_command("devices", "list", "--db", str(tmp_path / "fild.db")).end()
    assert (code, "there is no database" in err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_a_key_is_renewed_and_revoked_while_the_gateway_runs(gateway_command, serve, tmp_path):
    gateway, there = serve(), ("--db", str(tmp_path / "fieldpost.db"))

    def key(verb: str) -> bytes:
        return bytes.fromhex(gateway_command("devices", verb, "shed", *there).end()[1])

    old = key("add")
    assert signed_heartbeat(gateway, old) == 200
    new = key("rotate")
    assert [signed_heartbeat(gateway, k) for k in (old, new, old, new)] == [200, 200, 401, 200]
    assert gateway_command("devices", "revoke", "shed", *there).end()[0] == 0
    assert signed_heartbeat(gateway, bytes(32)) == 401  # looks it up: the rest of 5 s is not waited
    assert signed_heartbeat(gateway, new) == 401
    newest = key("add")
    assert newest not in (old, new)
    assert [signed_heartbeat(gateway, k) for k in (old, new, newest)] == [401, 401, 200]


def test_a_token_is_printed_once_and_the_leave_to_ask_is_listed(gateway_command, tmp_path):
    there = ("--db", str(tmp_path / "f"))
    add = ("devices", "add", "curl", "--bearer", "--may-ask", "--json", *there)
    tokens = [json.loads(gateway_command(*add).end()[1])["bearer"] for _ in range(2)]
    assert tokens[0] != tokens[1]
    [row] = json.loads(gateway_command("devices", "list", "--json", *there).end()[1])
    assert (row["generation"], row["has_bearer"], row["may_ask"]) == (None, 1, 1)
    gateway_command("devices", "revoke", "curl", "--bearer", "--may-ask", *there).end()
    [row] = json.loads(gateway_command("devices", "list", "--json", *there).end()[1])
    assert (row["has_bearer"], row["may_ask"]) == (0, 0)


@pytest.mark.parametrize("verb", [("rotate",), ("revoke",), ("revoke", "--bearer")])
def test_what_is_not_there_is_neither_renewed_nor_revoked(gateway_command, tmp_path, verb):
    there = ("--db", str(tmp_path / "f"))
    gateway_command("devices", "add", "other", *there).end()
    code, out, err = gateway_command("devices", *verb, "shed", *there).end()
    assert (code, out) == (2, "")
    assert "shed" in err


def test_a_link_of_the_command_line_logs_in_and_logout_ends_it(gateway_command, serve, tmp_path):
    gateway, there = serve(), ("--db", str(tmp_path / "fieldpost.db"))
    port = gateway.address.rpartition(":")[2]
    _, link, _ = gateway_command("login", "--port", port, *there).end()
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/login\?t=[0-9a-f]{{64}}\n", link)
    client = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10)
    try:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        client.request("POST", "/login", link.strip().partition("?")[2], form)
        answer = client.getresponse()
        answer.read()
        assert answer.status == 303
        assert gateway_command("logout", *there).end()[0] == 0
        cookie = {"Cookie": answer.getheader("Set-Cookie").partition(";")[0]}
        client.request("GET", "/v1/status", headers=cookie)
        assert client.getresponse().status == 401
    finally:
        client.close()


def test_a_link_for_a_database_in_memory_makes_no_sense(gateway_command):
    assert gateway_command("login", "--db", ":memory:").end()[0] == 2
