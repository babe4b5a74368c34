"""PURE: the signatures of requests and answers, docs/protocol.md section 3."""

import hmac
import re
from typing import NamedTuple

_FORM = re.compile(
    r'(?i:Fieldpost) +device="([A-Za-z0-9_.-]{1,64})", *nonce="([0-9a-f]{32})",'
    r' *signature="([0-9a-f]{64})"'
)


class Credentials(NamedTuple):
    """What an `Authorization: Fieldpost …` says; nothing of it is proved yet."""

    device: str
    nonce: str
    signature: str


def parse(authorization: str) -> Credentials | None:
    """Return what the header says, None if it is not in the form."""
    found = _FORM.fullmatch(authorization)
    return Credentials(*found.groups()) if found else None


def request_signature(
    key: bytes, method: str, target: str, device: str, nonce: str, body_sha256: str
) -> str:
    """Return the signature that a request must carry.

    Args:
        target: the request target as it was sent, with its query, nothing decoded.
        body_sha256: lowercase hex, of the body as it was sent.
    """
    told = f"fieldpost-request-1\n{method}\n{target}\n{device}\n{nonce}\n{body_sha256}"
    return _hex(key, told)


def answer_signature(
    key: bytes, device: str, nonce: str, status: int, retry_after: str, body_sha256: str
) -> str:
    """Return the signature of an answer; `retry_after` is the header's value or empty."""
    told = f"fieldpost-answer-1\n{device}\n{nonce}\n{status}\n{retry_after}\n{body_sha256}"
    return _hex(key, told)


def equal(one: str, other: str) -> bool:
    """Compare in constant time; any text can be given."""
    return hmac.compare_digest(_bytes(one), _bytes(other))


def _hex(key: bytes, told: str) -> str:
    return hmac.digest(key, _bytes(told), "sha256").hex()


def _bytes(text: str) -> bytes:
    # The server decodes a request line like this, so this gives back the bytes as they were sent.
    return text.encode("utf-8", "surrogateescape")
