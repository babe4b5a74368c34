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


def asks_for_known(request: web.Request, host_names: tuple[str, ...]) -> bool:
    """Return whether the Host is one that no page of another site can be loaded from.

    Such a page needs a name that its owner can make resolve to this machine: so addresses, names
    without a dot and those of a network of one's own are safe; any other must be told.

    Args:
        host_names: more names by which this gateway is asked for.
    """
    return _is_known(request.headers.get("Host", ""), host_names)


KNOWN_NAMES = "its address, a name of the local network, or one that host_names tells"

# RFC 6762, RFC 8375, and what ICANN keeps for private use; `lan` and `home` are not delegated.
_OWN_NETWORK = (".local", ".lan", ".home", ".internal", ".home.arpa", ".localhost")


@lru_cache(maxsize=256)
def _is_known(host: str, host_names: tuple[str, ...]) -> bool:
    name = _name(host)
    told = {one.lower().rstrip(".") for one in host_names}
    if not name:
        return False
    return name in told or "." not in name or name.endswith(_OWN_NETWORK) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def _names_loopback(host: str) -> bool:
    name = _name(host)
    return name == "localhost" or _is_loopback(name)


def _name(host: str) -> str:
    """Return a Host's name, in lower case, without port, brackets and the root's dot."""
    name = host.rsplit(":", 1)[0] if _has_port(host) else host
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name.lower().rstrip(".")


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
