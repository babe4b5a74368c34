"""Answers a delivery that came by another way than HTTP just as HTTP would answer it.

Who may deliver, what becomes of it and which failure gets which answer is decided by the same
parts: the gate, the one door for readings, and the one place where failures become answers.
"""

import hashlib
import logging
from typing import NamedTuple

from aiohttp import web

from gateway.web import problem
from gateway.web.caller import Signer
from gateway.web.envelope import new_request_id, signature_of
from gateway.web.gate import Gate
from gateway.web.readings import Delivery

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What HTTP would have answered, and the signature that would have gone with it."""

    status: int
    body: bytes
    retry_after: str | None
    signature: str | None  # None: nobody signed the request


class Front:
    """`POST /v1/readings` for those who do not come over HTTP."""

    def __init__(self, gate: Gate, delivery: Delivery) -> None:
        self._gate = gate
        self._delivery = delivery

    async def answer(self, authorization: str | None, body: bytes, way: str) -> Answer:
        """Take the body of a delivery; never raises but when it is cancelled.

        Args:
            authorization: as the header of that name.
            way: by which it came, for the log.
        """
        request_id, signer = new_request_id(), None
        try:
            caller = await self._gate.on_cable(authorization, hashlib.sha256(body).hexdigest())
            signer = caller.signer
            response = await self._delivery.take(body, "", caller, request_id)
        except Exception as failure:
            response = problem.of(failure, request_id)
        if response.status >= 400:
            extra = {"request_id": request_id, "caller": signer.device if signer else "unknown"}
            log.info("delivery by %s -> %d", way, response.status, extra=extra)
        return _answer(response, signer)

    def refuse(self, detail: str) -> Answer:
        """Return the answer to what is no delivery at all."""
        return _answer(problem.answer(400, detail, new_request_id()), None)


def _answer(response: web.Response, signer: Signer | None) -> Answer:
    body = response.body
    assert isinstance(body, bytes)
    retry_after = response.headers.get("Retry-After")
    signature = signer and signature_of(signer, response.status, retry_after or "", body)
    return Answer(response.status, body, retry_after, signature)
