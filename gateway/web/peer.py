"""Where a request comes from: this machine or another one."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from aiohttp import web


def is_local(request: web.Request) -> bool:
    """Return whether the other end of the connection is on this machine."""
    return _is_loopback(request.remote or "")


def asks_for_local(request: web.Request) -> bool:
    """Return whether the Host that was asked for is a name of the loopback.

    A page of another site can make its own name resolve to 127.0.0.1, and a browser then takes
    what we answer for that site's; but it still sends that site's name as the Host.
    """
    return _names_loopback(request.headers.get("Host", ""))


@lru_cache(maxsize=256)
def _names_loopback(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if _has_port(host) else host
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name.lower().rstrip(".") == "localhost" or _is_loopback(name)


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and (host.count(":") == 1 or "]:" in host)


@lru_cache(maxsize=256)
def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback
