"""HTTPS end to end: a gateway with a certificate of its own, a board that has a copy, a browser."""

import http.client
import re
import ssl
import urllib.parse
from pathlib import Path

import pytest

from gateway import listener
from tests.system.board_process import BoardProcess, needs_micropython, trace_lines, until
from tools import certificate
from tools.certificate import Made, make


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = make(["127.0.0.1", "localhost"])
    (tmp_path / "c.pem").write_bytes(made.certificate)
    (tmp_path / "k.pem").write_bytes(made.key)
    return made


@pytest.fixture
def secure(serve, made, tmp_path):
    return serve("--tls-cert", str(tmp_path / "c.pem"), "--tls-key", str(tmp_path / "k.pem"))


def client(gateway, made: Made) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cadata=made.certificate.decode())
    port = int(gateway.address.rpartition(":")[2])
    return http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)


def test_no_protocol_older_than_tls_1_2_is_spoken(made: Made, tmp_path: Path) -> None:
    context = listener.certificate(str(tmp_path / "c.pem"), str(tmp_path / "k.pem"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_log_in_over_https_gives_a_cookie_that_never_travels_in_plain(secure, made):
    link = secure.wait_for(r"log in once, .*: (https://\S+)")[1]
    sent = urllib.parse.urlsplit(link).query
    browser = client(secure, made)
    try:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        browser.request("POST", "/login", sent, form)
        answer = browser.getresponse()
        answer.read()
        cookie = answer.getheader("Set-Cookie")
        assert re.match(r"__Host-fieldpost-\d+=[0-9a-f]{64}; ", cookie)
        assert "Secure" in cookie.split("; ")
        browser.request("GET", "/v1/status", headers={"Cookie": cookie.partition(";")[0]})
        assert browser.getresponse().status == 200
    finally:
        browser.close()


@needs_micropython
def test_a_board_with_a_copy_of_the_certificate_delivers_and_one_with_another_does_not(
    secure, made, gateway_command, tmp_path
):
    there = ("--db", str(tmp_path / "fieldpost.db"))
    key = gateway_command("devices", "add", "shed", *there).end()[1].strip()
    flags = ("--device", "shed", "--key", key, "--gateway", secure.address, "--period-ms", "200")
    trace = tmp_path / "trace"
    trusted = (*flags, "--tls-cert", made.for_boards, "--trace", trace)
    with BoardProcess(tmp_path / "a.img", *trusted):
        until(lambda: trace.exists() and any("acked" in one for one in trace_lines(trace)))
    with BoardProcess(
        tmp_path / "b.img", *flags, "--tls-cert", make(["127.0.0.1"]).for_boards
    ) as board:
        assert "certificate" in board.wait_for("not sent")


def test_the_command_writes_a_key_that_only_its_owner_can_read_and_keeps_the_one_there_is(
    tmp_path, capsys
):
    assert certificate.main(["gateway.lan", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "--tls-cert" in said
    assert '"tls_cert": "' in said
    key = tmp_path / "tls.key"
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    listener.certificate(str(tmp_path / "tls.crt"), str(key))
    assert certificate.main(["other.lan", "--folder", str(tmp_path)]) == 2
    assert key.read_bytes() == before
