"""Every answer to a correctly signed request is signed, whatever its status.

`House.signed` checks the signature, the Content-Length and that nothing is encoded.
"""

import gzip
import zlib
from typing import Any

import pytest

from gateway.errors import Unavailable
from gateway.web.body import MAX_BYTES
from tests.web.conftest import Open
from tests.web.house import House, batch, body, problem_of


class Failing:
    """A door for readings that raises what it is given."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    async def deliver(self, *given: Any, **named: Any) -> None:
        raise self._failure


@pytest.mark.parametrize(
    ("status", "sent"),
    [
        (400, b"no json"),
        (400, b""),
        (413, body(batch(count=65))),
        (400, b"[" * 100_000 + b"]" * 100_000),
        (413, body(batch()).ljust(16 * 1024 + 1)),
        (413, body(batch()).ljust(MAX_BYTES)),
        (422, b"{}"),
        (403, body(batch("esp32-2"))),
    ],
    ids=lambda value: f"{len(value)}-bytes" if isinstance(value, bytes) else str(value),
)
async def test_a_refused_body_is_refused_with_a_signature(
    house: House, status: int, sent: bytes
) -> None:
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", sent)
    assert problem_of(answer)["status"] == status


@pytest.mark.parametrize(
    ("status", "encoding", "sent"),
    [
        (400, "gzip", b"no gzip"),
        (400, "gzip", gzip.compress(body(batch()))[:-4]),
        (400, "gzip", gzip.compress(body(batch())) + b"more"),
        (400, "deflate", b"\x78\x9c\xff\xff\xff"),
        (400, "deflate", zlib.compress(body(batch()))[:-1]),
        (413, "gzip", gzip.compress(b" " * 10_000_000)),
        (413, "deflate", zlib.compress(body(batch()).ljust(16 * 1024 + 1))),
        (415, "br", b"x"),
        (415, "gzip, gzip", b"x"),
    ],
)
async def test_an_encoding_that_can_not_be_undone_is_refused_with_a_signature(
    house: House, status: int, encoding: str, sent: bytes
) -> None:
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", sent, Content_Encoding=encoding)
    assert problem_of(answer)["status"] == status


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "identity"])
async def test_the_signature_is_over_the_body_as_it_was_sent(house: House, encoding: str) -> None:
    await house.register("esp32-1")
    plain = body(batch())
    encode = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding.lower(), bytes)
    answer = await house.signed("esp32-1", encode(plain), Content_Encoding=encoding)
    assert answer.json["stored"] == 1


async def test_a_body_of_just_the_bound_is_taken(house: House) -> None:
    await house.register("esp32-1")
    padded = body(batch()).ljust(16 * 1024)
    assert (await house.signed("esp32-1", padded)).status == 200
    answer = await house.signed("esp32-1", gzip.compress(padded), Content_Encoding="gzip")
    assert answer.json["duplicates"] == 1


async def test_not_found_and_method_not_allowed_are_signed(house: House) -> None:
    await house.register("esp32-1")
    assert (await house.signed("esp32-1", b"x", target="/v1/nothing")).status == 404
    assert (await house.signed("esp32-1", b"x", method="DELETE")).status == 405
    assert (await house.signed("esp32-1", b"", method="HEAD")).status == 403


async def test_retry_after_is_in_the_signature(open_house: Open) -> None:
    busy = Unavailable("busy", retry_after_s=7)
    house = await open_house(ingest=lambda db: Failing(busy))
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch()))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "7")


async def test_a_fault_of_ours_is_signed_logged_whole_and_tells_nothing(
    open_house: Open, caplog: pytest.LogCaptureFixture
) -> None:
    house = await open_house(ingest=lambda db: Failing(RuntimeError("a secret thing")))
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch()), X_Request_ID="find-me")
    assert problem_of(answer)["status"] == 500
    assert "secret" not in answer.text
    logged = next(record for record in caplog.records if record.exc_info)
    assert "a secret thing" in str(logged.exc_info)
    assert logged.__dict__["request_id"] == "find-me"


async def test_a_full_disk_puts_readings_off_and_nothing_else(open_house: Open) -> None:
    house = await open_house(min_free_bytes=2**50)
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", body(batch()))
    assert problem_of(answer)["status"] == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert (await house.operator("/v1/readings")).json["readings"] == []
