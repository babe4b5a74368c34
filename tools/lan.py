"""This machine's addresses in its networks."""

import socket
from contextlib import suppress


def addresses() -> list[str]:
    """Return those that others can reach, as far as they can be found out; the likeliest first."""
    found: dict[str, None] = {}  # in order
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses the way out
        found[probe.getsockname()[0]] = None
    with suppress(OSError):  # a machine need not know its own name
        found.update(dict.fromkeys(socket.gethostbyname_ex(socket.gethostname())[2]))
    return [address for address in found if not address.startswith(("127.", "0."))]
