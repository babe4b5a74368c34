"""What the page needs to know of whoever looks at it: the token of its forms, the open banner.

A form of the page is `method="post"` to a resource that needs `Need.ACT`, and brings its token in
one of two ways, whichever is read before anything of the body is believed:

- `application/x-www-form-urlencoded` (the usual form): `<input type="hidden" name="csrf"
  value="{{ csrf }}">`. The gate has read such a body already: a handler takes its fields from
  `form(request)`, never from `request.post()`, which finds nothing left.
- any other body, such as `multipart/form-data` with a file: in the address of the form,
  `action="/status/imports?csrf={{ csrf }}"`, or in the header `X-CSRF-Token` of a script. So a
  file of any size is streamed by its handler, and nobody without a token makes us read it.

`csrf_token(request)` and `open_banner(request)` are what templates are given. Pages with forms
need `form-action 'self'` in their Content-Security-Policy, and a log-out is
`<form method="post" action="/logout">` with the same field.
"""

import hmac
from typing import Any

from aiohttp import web
from multidict import MultiDict

from gateway.config import Config
from gateway.web.caller import Kind
from gateway.web.exchange import CALLER, CSRF, FORM

FIELD = "csrf"
HEADER = "X-CSRF-Token"

_OPEN_HERE = "everybody on this machine reads and writes here without a key"
_OPEN_LAN = "everybody who can reach this gateway reads and writes here without a key"


def csrf_token(request: web.Request) -> str:
    """Return the token that the forms of this page must bring back; empty where none may act."""
    token: str = request.get(CSRF, "")
    return token


def form(request: web.Request) -> MultiDict[str]:
    """Return the fields of the form that was sent; empty for a body that is no usual form."""
    fields: MultiDict[str] = request.get(FORM, MultiDict())
    return fields


def open_banner(request: web.Request, config: Config) -> str | None:
    """Return what a page must say on top in open mode; None in any other."""
    if not config.open or request[CALLER].kind is not Kind.OPEN:
        return None
    return _OPEN_LAN if config.open_lan else _OPEN_HERE


def is_logged_in(request: web.Request) -> bool:
    """Return whether there is something to log out of."""
    return request[CALLER].session is not None


def derived_token(secret: str | bytes) -> str:
    """Return the token of forms that belongs to a session (its cookie's value) or to open mode."""
    key = secret.encode() if isinstance(secret, str) else secret
    return hmac.digest(key, b"fieldpost-csrf-1", "sha256").hex()


def brings(request: web.Request, fields: MultiDict[str]) -> str:
    """Return the token that came with a form; empty if there is none."""
    found: Any = request.query.get(FIELD) or request.headers.get(HEADER) or fields.get(FIELD)
    return found if isinstance(found, str) else ""
