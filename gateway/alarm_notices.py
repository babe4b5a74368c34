"""Mail and webhooks that tell of alarms: jobs, asked for in the transaction that notes it.

An alarm is told once for each opening; several that open together share a message, for when an
access point goes down, a thousand devices are silent and nobody reads a thousand mails.
"""

import hashlib
import sqlite3
from typing import Any

import msgspec

from gateway.alarm_texts import text_of
from gateway.errors import Misconfigured
from gateway.kinds import Kinds
from gateway.outcomes import Permanent
from gateway.store import alarms
from gateway.store.alarms import Untold
from gateway.store.jobs import Asked, Queue
from gateway.tables import Notify

MOST_TOLD = 500  # in one message
_CALLER = "alarms"
_MOST_SUBJECT = 200


class Notices:
    """Asks for the jobs that tell of what opened.

    Raises:
        Misconfigured: `[alarms.notify]` names what the jobs would refuse.
    """

    def __init__(self, settings: Notify, queue: Queue, kinds: Kinds, has_smtp: bool) -> None:
        self._settings = settings
        self._queue = queue
        self._quiet_ms = int(settings.quiet_s * 1000)
        if settings.email and not has_smtp:
            raise Misconfigured("alarms.notify.email needs the table [smtp]: who takes the mail?")
        probe = [Untold(1, "gap", "device", "detail", 1)]
        for kind, args in self._messages("probe", probe):
            try:
                kinds[kind].decode(msgspec.json.encode(args))
            except KeyError:
                raise Misconfigured(f"alarms.notify: no job {kind} is known here") from None
            except Permanent as error:
                raise Misconfigured(f"alarms.notify: {error}") from None

    @property
    def are_wanted(self) -> bool:
        return bool(self._settings.email or self._settings.webhook)

    def ask(self, connection: sqlite3.Connection, now_ms: int) -> int:
        """Ask for messages of what nobody was told of yet; return how many jobs were added."""
        if not self.are_wanted:
            return 0
        untold = alarms.untold(connection, now_ms, self._quiet_ms, MOST_TOLD)
        if not untold:
            return 0
        # A new database counts its alarms anew, so the id alone is no name for ever.
        key = f"alarm-{untold[0].id}-{untold[0].opened_at_ms}"
        added = 0
        for kind, args in self._messages(key, untold):
            sent = msgspec.json.encode(args, order="sorted")
            asked = Asked(
                kind, sent.decode(), request_id=key, caller=_CALLER,
                idempotency_key=f"{key} {kind}", fingerprint=hashlib.sha256(sent).digest(),
            )  # fmt: skip
            added += self._queue.enqueue(connection, asked, now_ms)[1]
        alarms.note_told(connection, [one.id for one in untold], now_ms)
        return added

    def _messages(self, key: str, told: list[Untold]) -> list[tuple[str, dict[str, Any]]]:
        messages: list[tuple[str, dict[str, Any]]] = []
        if self._settings.email:
            mail = {"to": self._settings.email, "subject": _subject(told), "text": _text(told)}
            messages.append(("send_email", mail | {"key": key}))
        if self._settings.webhook:
            payload = {"alarms": [_described(one) for one in told]}
            hook = {"url": self._settings.webhook, "payload": payload, "key": key}
            messages.append(("send_webhook", hook))
        return messages


def _subject(told: list[Untold]) -> str:
    first = f"{text_of(told[0].kind).title}: {told[0].subject}"
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    shown = "".join(c if c.isprintable() else "?" for c in first)[:_MOST_SUBJECT]
    return f"Fieldpost: {shown}{more}"


def _text(told: list[Untold]) -> str:
    parts = []
    for one in told:
        text = text_of(one.kind)
        parts.append(f"{text.title}: {one.subject}\n{one.detail}\n{text.means}\n{text.do}\n")
    return "\n".join(parts)


def _described(one: Untold) -> dict[str, Any]:
    return one._asdict() | {"title": text_of(one.kind).title}
