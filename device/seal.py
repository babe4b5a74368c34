# PURE: signs what is sent, and says which answers count.

import binascii
import hashlib

import backoff

_BLOCK = 64
_MAX_ASKED_SIGNED_MS = 3600 * 1000
_MAX_ASKED_MS = 300 * 1000


def hmac_sha256(key, message):
    """RFC 2104 with a key of at most 64 bytes."""
    key = key + bytes(_BLOCK - len(key))
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in key))
    inner.update(message)
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in key))
    outer.update(inner.digest())
    return outer.digest()


def same(a, b):
    """Compare in a time that does not tell where they differ."""
    if len(a) != len(b):
        return False
    differing = 0
    for at in range(len(a)):
        differing |= a[at] ^ b[at]
    return differing == 0


def sha256_hex(data):
    return binascii.hexlify(hashlib.sha256(data).digest()).decode()


class Seal:
    # key: 32 bytes, or None in open mode.
    def __init__(self, device, key):
        self._device = device
        self._key = key

    def authorization(self, method, target, nonce, body_hash):
        """The Authorization header's value, or None in open mode.

        body_hash: SHA-256 of the body as sent, in hex.
        """
        if self._key is None:
            return None
        words = ("fieldpost-request-1", method, target, self._device, nonce, body_hash)
        return 'Fieldpost device="%s", nonce="%s", signature="%s"' % (
            self._device,
            nonce,
            self._sign(words),
        )

    def signed(self, nonce, status, retry_after, signature, body):
        """Whether this answer was signed by somebody who has the key."""
        if self._key is None or signature is None:
            return False
        words = (
            "fieldpost-answer-1",
            self._device,
            nonce,
            str(status),
            retry_after or "",
            sha256_hex(body),
        )
        return same(self._sign(words).encode(), signature.encode())

    def counts(self, status, signed, protocol):
        """Whether this is an answer at all, and not a portal's page or a forger's."""
        if self._key is None or status in (401, 403):
            # A gateway can not sign for a key that it refuses, and nothing is removed on
            # these two: so here its own header is enough for the LED to say so.
            return signed or protocol == "1"
        return signed

    def _sign(self, words):
        return binascii.hexlify(hmac_sha256(self._key, "\n".join(words).encode())).decode()


def asked_ms(retry_after, signed, random):
    """How long a Retry-After asks us to wait; 0 if it does not, or not in whole seconds."""
    if not retry_after or not retry_after.encode().isdigit():
        return 0
    limit_ms = _MAX_ASKED_SIGNED_MS if signed else _MAX_ASKED_MS
    # What all boards were told alike would bring them all back in the same second.
    jitter_ms = int(backoff.INITIAL_MS * random())
    asked = limit_ms if len(retry_after) > 6 else int(retry_after) * 1000
    return min(asked + jitter_ms, limit_ms)
