"""The one place where a failure becomes an answer: `application/problem+json` (RFC 9457)."""

import logging
import sqlite3
from http import HTTPStatus

import msgspec
from aiohttp import web

from gateway.errors import Rejected, TooOften, Unavailable
from gateway.web import inflate

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
_READ_AGAIN_AFTER_S = "5"
_CLOSE_AFTER = 408  # what is left of the body would be taken for the next request

_ALWAYS_WITH = {
    401: {"WWW-Authenticate": "Fieldpost, Bearer"},
    415: {"Accept-Encoding": inflate.ACCEPTED},
}


def of(failure: Exception, request_id: str) -> web.Response:
    """Return the answer that tells of this failure. What nobody expected is logged whole."""
    match failure:
        case TooOften():
            again = {"Retry-After": str(failure.retry_after_s)}
            return answer(failure.status, failure.detail, request_id, again)
        case Rejected():
            return answer(failure.status, failure.detail, request_id)
        case Unavailable():
            log.warning("put off: %s", failure.detail, extra={"request_id": request_id})
            again = {"Retry-After": str(failure.retry_after_s)}
            return answer(503, failure.detail, request_id, again)
        case web.HTTPException():
            return _of_aiohttp(failure, request_id)
        case sqlite3.Error():
            _log(failure, request_id)
            again = {"Retry-After": _READ_AGAIN_AFTER_S}
            return answer(503, "the database can not be read just now", request_id, again)
    _log(failure, request_id)
    return answer(500, "a fault of the gateway; its log tells more about this request", request_id)


def _log(failure: Exception, request_id: str) -> None:
    log.error("unexpected fault", exc_info=failure, extra={"request_id": request_id})


def answer(
    status: int, detail: str, request_id: str, headers: dict[str, str] | None = None
) -> web.Response:
    """Return a problem with what belongs to every one of its status."""
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": request_id,
    }
    response = web.Response(
        status=status,
        body=msgspec.json.encode(problem),
        headers={**_ALWAYS_WITH.get(status, {}), **(headers or {})},
        content_type=CONTENT_TYPE,
    )
    if status == _CLOSE_AFTER:
        response.force_close()
    return response


def _of_aiohttp(raised: web.HTTPException, request_id: str) -> web.Response:
    match raised:
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(raised.allowed_methods))
            detail = f"here is only {allowed}"
            return answer(405, detail, request_id, {"Allow": allowed})
        case web.HTTPNotFound():
            return answer(404, "there is nothing at this address", request_id)
    return answer(raised.status, raised.reason, request_id)
