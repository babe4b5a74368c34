"""The cookie of an operator's browser."""

from aiohttp import web

from gateway.store.sessions import SESSION_LIFE_S

_MOST_CHARACTERS = 128


def secret(request: web.Request) -> str | None:
    """Return the session's secret that the browser brings, None if it brings none."""
    found = request.cookies.get(_name(request))
    return found if found and len(found) <= _MOST_CHARACTERS and found.isascii() else None


def give(response: web.Response, request: web.Request, session: str) -> None:
    """Let the browser keep it: never shown to scripts, never sent with what other sites ask."""
    response.set_cookie(
        _name(request),
        session,
        max_age=SESSION_LIFE_S,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=request.secure,
    )


def take(response: web.Response, request: web.Request) -> None:
    """Let the browser forget it."""
    response.del_cookie(
        _name(request), path="/", httponly=True, samesite="Strict", secure=request.secure
    )


def _name(request: web.Request) -> str:
    # Browsers keep the cookies of all ports of a host together: two gateways on one machine must
    # not log each other out. With TLS `__Host-` keeps other names of the domain from setting it.
    _, _, port = request.host.rpartition(":")
    place = port if port.isdecimal() and port.isascii() else "0"
    return f"{'__Host-' if request.secure else ''}fieldpost-{place}"
