"""`send_webhook`: tell another service, again and again until it says that it knows.

It may be told twice, when its answer was lost; the key that comes with it is the same then.
"""

import hashlib
import hmac
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Annotated, Any

import aiohttp
import msgspec
from msgspec import Meta, Struct

from gateway.kinds import Context, Kind
from gateway.outcomes import Permanent, RetryAfter

_LEAST_WAIT_S, _MOST_WAIT_S = 2, 3600  # whatever a service asks for
_MOST_TOLD_BYTES = 200  # of an answer that says no

# What a service says when it may take the same request later; beside every 5xx.
_LATER = {408, 425, 429}


class Args(Struct, forbid_unknown_fields=True):
    """What is told to whom.

    Attributes:
        payload: the JSON that is sent.
        key: what the service knows the message by; without it the job's id, which all its tries
            share and no other job ever has.
    """

    url: Annotated[str, Meta(max_length=2048, pattern=r"\Ahttps?://[^\s\x00-\x1f\x7f]+\Z")]
    payload: Any
    key: Annotated[str, Meta(pattern=r"\A[\x21\x23-\x5b\x5d-\x7e]{1,128}\Z")] | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=60)] = 10.0


def kind(settings: dict[str, Any]) -> Kind:
    signing_key = bytes.fromhex(settings.get("webhook_key") or "")

    async def send(context: Context, args: Args) -> None:
        key = f"webhook:{args.key or f'job-{context.job_id}'}"
        body = msgspec.json.encode(args.payload, order="sorted")
        async with context.effect(key, repeat=True) as effect:
            if effect.is_due:
                try:
                    effect.result = await _post(args, body, _headers(key, body, signing_key))
                except aiohttp.InvalidURL as error:
                    raise Permanent(f"{args.url} is no URL that can be called") from error

    return Kind("send_webhook", send, Args)


def _headers(key: str, body: bytes, signing_key: bytes) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{key}"'}
    if signing_key:
        headers["Fieldpost-Signature"] = hmac.digest(signing_key, body, hashlib.sha256).hex()
    return headers


async def _post(args: Args, body: bytes, headers: dict[str, str]) -> str:
    """Send it once; return the answer's status line.

    Raises:
        Permanent: it was refused for good; a redirect is too, as it would go to somebody else.
        RetryAfter: the service says when it wants it.
        OSError, aiohttp.ClientError, TimeoutError: there was no answer, or one of 5xx.
    """
    limit = aiohttp.ClientTimeout(total=args.timeout_s)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.post(args.url, data=body, headers=headers, allow_redirects=False) as answer,
    ):
        said = f"HTTP {answer.status} {answer.reason or ''}".strip()
        if answer.status < 300:
            return said
        told = (await answer.content.read(_MOST_TOLD_BYTES)).decode(errors="replace")
        error = f"{args.url} answered {said}: {told}"
        if answer.status not in _LATER and answer.status < 500:
            raise Permanent(error)
        wait_s = _retry_after_s(answer.headers, time.time())
        if wait_s is not None:
            raise RetryAfter(wait_s, error)
        raise OSError(error)


def _retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return what `Retry-After` asks for, a number of seconds or a date (RFC 9110), capped."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdecimal():
        wait_s = float(value[:9])
    else:
        try:
            wait_s = parsedate_to_datetime(value).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    return min(max(wait_s, _LEAST_WAIT_S), _MOST_WAIT_S)
