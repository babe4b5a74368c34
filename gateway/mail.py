"""Hands messages to the operator's mail server, and says of each whether it may have been sent."""

import platform
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from email.message import EmailMessage
from email.policy import SMTP as LINES
from typing import Annotated, Any, Literal

import aiosmtplib
import msgspec
from msgspec import Meta, Struct

from gateway.kinds import Effect
from gateway.outcomes import Permanent

_PORTS = {"tls": 465, "starttls": 587, "none": 25}
_TIMEOUT_S = 20.0  # for each answer of the server

# RFC 5321 without quoted local parts and without SMTPUTF8.
Address = Annotated[
    str, Meta(max_length=254, pattern=r"\A[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]+\Z")
]


class Server(Struct):
    """Where mail is handed over; the setting `smtp`. `port` None: 465 for tls, 587 for starttls,
    25 for none (RFC 8314, 6409 and 5321).
    """

    host: str
    sender: Address
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    user: str | None = None
    password: str | None = None
    tls: Literal["none", "starttls", "tls"] = "starttls"

    def __post_init__(self) -> None:
        self.port = self.port or _PORTS[self.tls]

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "Server":
        """Return it. Raises Permanent, saying what to do, where it is missing or malformed."""
        if not settings.get("smtp"):
            raise Permanent(
                "no mail server is set: give host, sender and the rest under [smtp] in the"
                " configuration, restart the gateway, then try this job again"
            )
        try:
            return msgspec.convert(settings["smtp"], cls)
        except msgspec.ValidationError as error:
            raise Permanent(f"[smtp] in the configuration can not be used: {error}") from error


class NotNow(Exception):
    """The server can't take it just now; nothing was sent."""


class Closed(Permanent):
    """The server lets nobody in who comes as [smtp] says."""


class Session:
    """A connection to the server, opened when it is first needed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client: aiosmtplib.SMTP | None = None

    async def send(self, message: EmailMessage, recipient: str, effect: Effect) -> None:
        """Hand over a message for one recipient; on return it is the server's to deliver.

        Raises:
            Closed: as it says; there is no use in the next recipient.
            Permanent: refused for good; or nobody can know whether it was sent, see `effect`.
            NotNow: refused for now.
            OSError: the server can't be reached; nothing was sent.
        """
        effect.may_have_happened = False
        client = await self._connected()
        try:
            await client.mail(self._server.sender)
            await client.rcpt(recipient)
            effect.may_have_happened = True
            effect.result = await self._hand_over(client, message.as_bytes(), effect)
        except aiosmtplib.SMTPResponseException as refused:
            with suppress(OSError, aiosmtplib.SMTPException):
                await client.rset()  # leave nothing of this one for the next
            raise (Permanent if refused.code >= 500 else NotNow)(_said(refused)) from refused

    async def _hand_over(self, client: aiosmtplib.SMTP, message: bytes, effect: Effect) -> str:
        try:
            return (await client.data(message)).message
        except aiosmtplib.SMTPDataError:
            effect.may_have_happened = False
            raise
        except (OSError, aiosmtplib.SMTPException) as error:
            raise Permanent(
                f"the connection to the mail server was lost before it said whether it took the"
                f" message ({error}); it may have been sent and was not repeated. Look there"
                " first: trying this job again repeats it"
            ) from error

    async def _connected(self) -> aiosmtplib.SMTP:
        if self._client is None:
            server = self._server
            client = aiosmtplib.SMTP(
                hostname=server.host, port=server.port, username=server.user,
                password=server.password, use_tls=server.tls == "tls",
                start_tls=server.tls == "starttls", tls_context=ssl.create_default_context(),
                local_hostname=platform.node() or "localhost", timeout=_TIMEOUT_S,
            )  # fmt: skip
            try:
                await client.connect()
            except aiosmtplib.SMTPResponseException as refused:
                raise (Closed if refused.code >= 500 else OSError)(_said(refused)) from refused
            except aiosmtplib.SMTPException as error:
                if isinstance(error, OSError):
                    raise
                raise Closed(f"the mail server can not be used as [smtp] says: {error}") from error
            self._client = client
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            with suppress(OSError, aiosmtplib.SMTPException):
                await self._client.quit()
            self._client.close()


def _said(refused: aiosmtplib.SMTPResponseException) -> str:
    return f"the mail server says {refused.code} {refused.message}"


@asynccontextmanager
async def session(server: Server) -> AsyncIterator[Session]:
    opened = Session(server)
    try:
        yield opened
    finally:
        await opened.close()


def message(
    server: Server, to: list[str], subject: str, text: str, html: str | None, message_id: str
) -> EmailMessage:
    """Return a message that survives every server: lines of 7 bits, no more than they may have."""
    made = EmailMessage(policy=LINES.clone(cte_type="7bit"))
    made["From"] = server.sender
    made["To"] = ", ".join(to)
    made["Subject"] = subject
    made["Message-ID"] = f"<{message_id}@{server.sender.partition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's holiday notice answers it
    made.set_content(text)
    if html is not None:
        made.add_alternative(html, subtype="html")
    return made
