"""PURE: undoes the Content-Encoding of a body, with a bound on what comes out."""

import zlib

from gateway.errors import Rejected

# zlib's wbits for each coding that is taken; `deflate` is zlib's own format (RFC 9110, 8.4.1.2).
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}

ACCEPTED = "gzip, deflate"


def inflate(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return the body as it was before `encoding`, an empty one for none.

    Raises:
        Rejected: 415 unknown coding, 400 corrupt, torn or followed by more, 413 over the bound.
    """
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        return _bounded(body, max_bytes)
    if coding not in _WINDOW_BITS:
        raise Rejected(415, f"Content-Encoding may be {ACCEPTED}, or none")
    stream = zlib.decompressobj(_WINDOW_BITS[coding])
    try:
        inflated = stream.decompress(body, max_bytes + 1)
    except zlib.error:
        raise Rejected(400, f"the body is not {coding}") from None
    _bounded(inflated, max_bytes)
    if not stream.eof:
        raise Rejected(400, f"the {coding} body ends too early")
    if stream.unused_data:
        raise Rejected(400, f"something follows the {coding} body")
    return inflated


def _bounded(body: bytes, max_bytes: int) -> bytes:
    if len(body) > max_bytes:
        raise Rejected(413, f"the body is larger than {max_bytes} bytes")
    return body
