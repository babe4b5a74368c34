"""Mail through a real SMTP server: at most once to each recipient, and the truth about the rest."""

import asyncio
import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from gateway.mail import Server
from gateway.tables import Smtp
from tests.services.errands import child_pids, errands

ASKED = {"to": ["ana@example.org"], "subject": "Relatório, ok", "text": "Olá\n.\nfim\n"}


@dataclass
class Postbox:
    """What the server does with what it is given. `answers`: to DATA, one after the other."""

    taken: list[tuple[list[str], Message]] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    answers: list[str | Callable[[Any], None]] = field(default_factory=list)

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refuses:
            return self.refuses[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        answer = self.answers.pop(0) if self.answers else "250 taken as 17"
        if isinstance(answer, str) and not answer.startswith("250"):
            return answer
        message = message_from_bytes(envelope.content, policy=default)
        self.taken.append((list(envelope.rcpt_tos), message))
        if callable(answer):
            answer(server)
            await asyncio.sleep(3600)  # until the connection is gone
        return str(answer)


@asynccontextmanager
async def server(
    postbox: Postbox, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[dict[str, Any]]:
    """Serve; the settings to reach it. `tls`: from the first byte."""
    running = await asyncio.get_running_loop().create_server(
        lambda: SMTP(postbox, hostname="mx.example.org", **options), "127.0.0.1", 0, ssl=tls
    )
    port = running.sockets[0].getsockname()[1]
    try:
        yield {"host": "localhost", "port": port, "sender": "fieldpost@example.org", "tls": "none"}
    finally:
        running.close()


async def test_a_message_arrives_whole_with_its_own_id(tmp_path: Path) -> None:
    postbox = Postbox()
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        job = await on.ended(await on.ask("send_email", html="<p>Olá</p>", **ASKED))
    assert (job["state"], job["error"]) == ("done", None)
    [(recipients, message)] = postbox.taken
    assert recipients == ["ana@example.org"]
    assert message["Subject"] == "Relatório, ok"
    assert message["From"] == "fieldpost@example.org"
    assert message["Message-ID"].endswith("@example.org>")
    assert message["Date"]
    # typeshed has get_body on EmailMessage only, which is what the policy makes here.
    assert message.get_body(("plain",)).get_content() == "Olá\r\n.\r\nfim\r\n"  # type: ignore[attr-defined]
    assert message.get_body(("html",)).get_content().strip() == "<p>Olá</p>"  # type: ignore[attr-defined]


async def test_two_jobs_with_one_key_send_one_message(tmp_path: Path) -> None:
    postbox = Postbox()
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        for _ in range(2):
            job = await on.ended(await on.ask("send_email", key="report:2026-11-30", **ASKED))
            assert job["state"] == "done"
        await on.ended(await on.ask("send_email", **ASKED))
    assert len(postbox.taken) == 2


async def test_a_worker_killed_between_the_act_and_its_record_sends_nothing_twice(
    tmp_path: Path,
) -> None:
    def kill(_: Any) -> None:
        [pid] = child_pids()
        os.kill(pid, signal.SIGKILL)

    postbox = Postbox(answers=[kill])
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        job_id = await on.ask("send_email", crashes=1, **ASKED)  # so in a process of its own
        job = await on.ended(job_id)
        assert (job["state"], job["crashes"]) == ("failed", 2)
        assert "may have happened" in job["error"]
        assert len(postbox.taken) == 1
        await on.retry(job_id)
        assert (await on.ended(job_id))["state"] == "done"
    first, second = (message["Message-ID"] for _, message in postbox.taken)
    assert first == second


async def test_a_connection_lost_after_the_data_is_told_to_a_person_and_not_repeated(
    tmp_path: Path,
) -> None:
    postbox = Postbox(answers=[lambda server: server.transport.abort()])
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        job = await on.ended(await on.ask("send_email", **ASKED))
        assert (job["state"], job["attempts"]) == ("failed", 1)
        assert "it may have been sent" in job["error"]
        assert await on.scalar("SELECT count(*) FROM effect WHERE done_at_ms IS NULL") == 1
    assert len(postbox.taken) == 1


@pytest.mark.parametrize("answer", ["451 try later", "421 closing"])
async def test_what_is_put_off_is_tried_again(tmp_path: Path, answer: str) -> None:
    postbox = Postbox(answers=[answer, answer])
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        job = await on.ended(await on.ask("send_email", **ASKED))
    assert (job["state"], job["attempts"]) == ("done", 3)
    assert len(postbox.taken) == 1


async def test_a_server_that_is_not_there_is_tried_again_and_leaves_nothing_unknown(
    tmp_path: Path,
) -> None:
    async with server(Postbox()) as smtp:
        pass
    async with errands(tmp_path, smtp=smtp) as on:
        job = await on.ended(await on.ask("send_email", **ASKED))
        assert (job["state"], job["attempts"]) == ("failed", 5)
        assert "may have" not in job["error"]
        assert await on.scalar("SELECT count(*) FROM effect") == 0


async def test_a_refused_recipient_costs_the_others_nothing(tmp_path: Path) -> None:
    postbox = Postbox(refuses={"bad@example.org": "550 no such user"})
    to = ["bad@example.org", "ana@example.org"]
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        job_id = await on.ask("send_email", **(ASKED | {"to": to}))
        job = await on.ended(job_id)
        assert (job["state"], job["attempts"]) == ("failed", 1)
        assert "bad@example.org: the mail server says 550 no such user" in job["error"]
        postbox.refuses.clear()
        await on.retry(job_id)
        assert (await on.ended(job_id))["state"] == "done"
    assert [one for one, _ in postbox.taken] == [["ana@example.org"], ["bad@example.org"]]


async def test_a_recipient_who_is_put_off_is_the_only_one_to_be_tried_again(tmp_path: Path) -> None:
    postbox = Postbox(answers=["250 OK", "451 greylisted"])
    to = ["ana@example.org", "rui@example.org"]
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp) as on:
        job = await on.ended(await on.ask("send_email", **(ASKED | {"to": to})))
    assert (job["state"], job["attempts"]) == ("done", 2)
    assert [one for one, _ in postbox.taken] == [["ana@example.org"], ["rui@example.org"]]


@pytest.mark.parametrize(("tls", "port"), [("tls", 465), ("starttls", 587), ("none", 25)])
def test_the_port_is_the_usual_one_unless_it_is_given(tls: str, port: int) -> None:
    said = {"host": "h", "sender": "g@example.org", "tls": tls}
    given = Server.of({"smtp": msgspec.to_builtins(msgspec.convert(said, Smtp))})
    assert given.port == port
    assert Server.of({"smtp": said | {"port": 2525}}).port == 2525


async def test_without_a_mail_server_the_job_says_what_to_do(tmp_path: Path) -> None:
    async with errands(tmp_path, smtp=None) as on:
        job = await on.ended(await on.ask("send_email", **ASKED))
    assert (job["state"], job["attempts"]) == ("failed", 1)
    assert "[smtp] in the configuration" in job["error"]


@pytest.mark.parametrize(
    "wrong",
    [{"to": []}, {"to": ["ana"]}, {"to": ["a@b\r\nBcc: c@d"]}, {"subject": "a\r\nBcc: c@d"}],
)
async def test_args_that_could_forge_a_header_are_refused(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    async with errands(tmp_path, smtp=None) as on:
        job = await on.ended(await on.ask("send_email", **(ASKED | wrong)))
    assert "args of send_email" in job["error"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost, with its key in the same file."""
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", str(file), "-out", str(file) + ".crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_text(file.read_text() + Path(str(file) + ".crt").read_text())
    return file


def _may_log_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    known = isinstance(data, LoginPassword) and data.password == b"right"
    return AuthResult(success=known, handled=False)


@pytest.mark.parametrize("tls", ["starttls", "tls"])
@pytest.mark.parametrize("password", ["right", "wrong"])
async def test_it_logs_in_over_tls_and_a_wrong_password_is_for_good(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch, tls: str, password: str
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    postbox = Postbox()
    options: dict[str, Any] = {"authenticator": _may_log_in}
    if tls == "starttls":
        options |= {"tls_context": context, "require_starttls": True, "auth_required": True}
    else:
        options |= {"auth_require_tls": False}
    async with server(postbox, context if tls == "tls" else None, **options) as smtp:
        smtp |= {"tls": tls, "user": "fieldpost", "password": password}
        async with errands(tmp_path, smtp=smtp) as on:
            job = await on.ended(await on.ask("send_email", **ASKED))
    if password == "right":
        assert (job["state"], job["error"]) == ("done", None)
        assert len(postbox.taken) == 1
    else:
        assert (job["state"], job["attempts"]) == ("failed", 1)
        assert "the mail server says 535" in job["error"]


async def test_a_server_without_tls_gets_nothing_when_tls_is_asked_for(tmp_path: Path) -> None:
    postbox = Postbox()
    async with server(postbox) as smtp, errands(tmp_path, smtp=smtp | {"tls": "starttls"}) as on:
        job = await on.ended(await on.ask("send_email", **ASKED))
    assert (job["state"], job["attempts"]) == ("failed", 1)
    assert not postbox.taken


async def test_a_certificate_of_nobody_known_gets_nothing(
    tmp_path: Path, certificate: Path
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    postbox = Postbox()
    async with (
        server(postbox, context) as smtp,
        errands(tmp_path, smtp=smtp | {"tls": "tls"}) as on,
    ):
        job = await on.ended(await on.ask("send_email", **ASKED))
    assert job["state"] == "failed"
    assert "certificate" in job["error"]
    assert not postbox.taken
