"""What came twice is there once: a reading whose acknowledgement was lost, and an e-mail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiosmtpd.smtp import SMTP, Envelope
from aiosmtpd.smtp import Session as Visit

from tools import ledger
from tools.lab.finding import Finding, Table
from tools.lab.site import Site

TITLE = "Twice is once"

_DEVICE = "twice"
_CHUNK_BYTES = 65_536
_WITHIN_S = 60.0
_TO = "someone@lab.example"
_PROTECTED, _REPEATING = "send_email", "send_email_again"


class Delivered(NamedTuple):
    """A delivery whose acknowledgement was lost, and the next one."""

    rows_before: int  # when the board still knew of nothing
    duplicates: int  # as the second answer says
    rows_after: int
    rows_of_two_ids: int


class Mailed(NamedTuple):
    """A job whose worker died just after the e-mail."""

    letters: int
    state: str
    error: str | None


class Cutting:
    """A connection to the gateway through somebody who cuts off the first answer.

    The answer is read to its first bytes before: whoever reads them knows that it was committed.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.cut = 0

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", self._port)
        sending = asyncio.create_task(_pour(reader, out))
        try:
            answer = await there.read(_CHUNK_BYTES)
            if self.cut == 0:
                self.cut += 1
                writer.transport.abort()
                return
            writer.write(answer)
            await _pour(there, writer)
        finally:
            sending.cancel()
            out.transport.abort()
            writer.close()


class Box:
    """A mail server's box. Whoever brings the first letter hears nothing: killed meanwhile."""

    def __init__(self) -> None:
        self.letters: list[bytes] = []
        self.has_first = asyncio.Event()

    async def handle_DATA(self, server: SMTP, session: Visit, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        self.letters.append(envelope.content)
        if not self.has_first.is_set():
            self.has_first.set()
            await asyncio.Event().wait()  # the end of the connection ends this
        return "250 it is in the box"


async def run(site: Site) -> Finding:
    delivered, protected, repeating = await asyncio.gather(
        _deliver(site), _mail(site, _PROTECTED), _mail(site, _REPEATING)
    )
    return _tell(site, delivered, protected, repeating)


async def _deliver(site: Site) -> Delivered:
    gateway = await site.gateway("--workers", 0)
    async with _cut_off(gateway.port) as port:
        url = f"http://127.0.0.1:{port}/v1/readings"
        first = _reading("first")
        with suppress(aiohttp.ClientError):
            await _post(site, url, first)
        before = len(ledger.stored(Path(gateway.db), _DEVICE))
        again = await _post(site, url, first)
        after = len(ledger.stored(Path(gateway.db), _DEVICE))
        await _post(site, url, _reading("one id"), _reading("another id"))
    rows = len(ledger.stored(Path(gateway.db), _DEVICE))
    return Delivered(before, again["duplicates"], after, rows - after)


def _reading(reading_id: str) -> dict[str, Any]:
    return {"id": reading_id, "sensor": "room", "value": 21.5, "unit": "Cel"}


async def _post(site: Site, url: str, *readings: dict[str, Any]) -> dict[str, Any]:
    body = {"device": _DEVICE, "readings": readings}
    async with site.http.post(url, json=body, headers={"Connection": "close"}) as answer:
        answer.raise_for_status()
        verdicts: dict[str, Any] = await answer.json()
        return verdicts


@asynccontextmanager
async def _cut_off(port: int) -> AsyncIterator[int]:
    """Yield the port at which the gateway is reached, but for the first answer."""
    server = await asyncio.start_server(Cutting(port).meet, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK_BYTES):
        target.write(chunk)
        await target.drain()


async def _mail(site: Site, kind: str) -> Mailed:
    box = Box()
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(box, hostname="lab.example"), "127.0.0.1", 0
    )
    async with server:
        config = site.folder / f"{kind}.toml"
        port = server.sockets[0].getsockname()[1]
        config.write_text(
            f'[smtp]\nhost = "127.0.0.1"\nport = {port}\ntls = "none"\nsender = "lab@lab.example"\n'
        )
        gateway = await site.gateway("--workers", 1, "--config", config)
        job = await gateway.ask(kind, {"to": [_TO], "subject": "Hello", "text": "Once, please."})
        async with asyncio.timeout(_WITHIN_S):
            await box.has_first.wait()
        await gateway.kill()
        await gateway.start()
        [ended] = await gateway.ended([job["id"]])
        await gateway.stop()
    return Mailed(len(box.letters), ended["state"], ended["error"])


def _tell(site: Site, delivered: Delivered, protected: Mailed, repeating: Mailed) -> Finding:
    _ = site.gettext
    finding = Finding(_(TITLE))
    finding.say(_(
        "A board delivers a reading, the gateway stores it, and the line is cut before the answer"
        " is back. The board can not know whether it arrived, so it sends it again. Each reading"
        " has a name of its own, and what has a name that is there already is not stored again. Two"
        " readings with the same value are two, if they have two names."
    ))  # fmt: skip
    finding.show(Table(
        (_("what was sent"), _("rows")),
        [
            (_("one reading; the answer was cut off"), str(delivered.rows_before)),
            (_("the same reading, sent again"), str(delivered.rows_after)),
            (_("the same value under two names"), str(delivered.rows_of_two_ids)),
        ],
    ))  # fmt: skip
    finding.say(_(
        "An e-mail can not be asked whether it was sent. Here the worker is killed when the letter"
        " is in the box of the mail server, and before it could write down that it sent it. It"
        " wrote down before that it was about to: so who comes after it sees that the letter may be"
        " gone, and lets a person look. Without that it is sent again."
    ))  # fmt: skip
    rows = [(_("intention first"), protected), (_("protection off"), repeating)]
    finding.show(Table(
        (_("how"), _("letters in the box"), _("state of the job")),
        [(how, str(one.letters), _(one.state)) for how, one in rows],
    ))  # fmt: skip
    if protected.error:
        finding.say(_("What the first job says: %(error)s", error=protected.error))
    finding.claim(_("The reading was stored although nobody heard of it, and sent again it is still"
                    " one row"),
                  (delivered.rows_before, delivered.duplicates, delivered.rows_after)
                  == (1, 1, 1))  # fmt: skip
    finding.claim(_("The same value under two names is two rows"), delivered.rows_of_two_ids == 2)
    finding.claim(_("With the intention first there is one letter, and the job asks a person to"
                    " look"), (protected.letters, protected.state) == (1, "failed"))  # fmt: skip
    finding.claim(_("With the protection off there are two letters"), repeating.letters == 2)
    finding.figures = {
        "delivered": delivered._asdict(), "protected": protected._asdict(),
        "repeating": repeating._asdict(),
    }  # fmt: skip
    return finding
