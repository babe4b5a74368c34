"""`send_email`: a message to some people, to each at most once.

Each recipient is an effect of his own, so a refused address costs the others nothing, and another
try goes only to those who have not got it.
"""

import hashlib
import time
from email.utils import formatdate
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from gateway import mail
from gateway.kinds import Context, Kind
from gateway.outcomes import Permanent

_MOST_RECIPIENTS = 50


class Args(Struct, forbid_unknown_fields=True):
    """What is sent to whom.

    Attributes:
        key: two jobs with the same key are the same message: what one sent the other does not.
            Without it each job is a message of its own, under the job's id, which all its tries
            share and no other job ever has.
    """

    to: Annotated[list[mail.Address], Meta(min_length=1, max_length=_MOST_RECIPIENTS)]
    subject: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]
    text: str
    html: str | None = None
    key: Annotated[str, Meta(pattern=r"\A[\x21\x23-\x5b\x5d-\x7e]{1,128}\Z")] | None = None


def kind(settings: dict[str, Any], *, repeat: bool = False) -> Kind:
    """Return the kind.

    Args:
        repeat: send again what may have been sent before, so that nobody misses it and some get it
            twice (see `Context.effect`). This switches the protection off that keeps it at once
            at most; it is there for experiments, and nothing that ships does so.
    """

    async def send(context: Context, args: Args) -> None:
        server = mail.Server.of(settings)
        key = args.key or f"job-{context.job_id}"
        message = mail.message(
            server, args.to, args.subject, args.text, args.html, _message_id(key, args)
        )
        message["Date"] = formatdate(time.time())
        refused: list[str] = []
        put_off: list[str] = []
        async with mail.session(server) as session:
            for recipient in dict.fromkeys(args.to):
                try:
                    async with context.effect(f"mail:{key}:{recipient}", repeat=repeat) as effect:
                        if effect.is_due:
                            await session.send(message, recipient, effect)
                except mail.Closed:
                    raise
                except Permanent as error:
                    refused.append(f"{recipient}: {error}")
                except mail.NotNow as error:
                    put_off.append(f"{recipient}: {error}")
        if put_off:
            raise mail.NotNow("; ".join(put_off + refused))
        if refused:
            raise Permanent("; ".join(refused))

    return Kind("send_email", send, Args)


def _message_id(key: str, args: Args) -> str:
    """Return the same at every try. The content is in it, as a new database counts jobs anew."""
    told = key.encode() + b"\0" + msgspec.json.encode(args)
    return "fieldpost-" + hashlib.sha256(told).hexdigest()[:32]
