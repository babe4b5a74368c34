# The `socket` of a board: the computer's sockets, which fail as lwIP's do while Wi-Fi is down.
# mypy: ignore-errors

import io
import select

import network
import usocket
from usocket import AF_INET, SO_REUSEADDR, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET  # noqa: F401

_NO_NAME = -202  # lwIP's EAI_FAIL
_ECONNABORTED = 113  # the ESP32's own numbers, not this computer's
_EHOSTUNREACH = 118
_POLL = 3  # py/stream.h: what TLS over this socket is waited for by
_GET_FILENO = 10  # by it `select` can wait for the real socket


def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    # Only IPv4, as a board by default; literal addresses need no network.
    if not (network.routed() or host.replace(".", "").isdigit()):
        raise OSError(_NO_NAME)
    try:
        return usocket.getaddrinfo(host, port, AF_INET, type or SOCK_STREAM)
    except OSError:
        raise OSError(_NO_NAME)  # noqa: B904 MicroPython chains no exceptions


class socket(io.IOBase):
    def __init__(self, *kind):
        self._real = usocket.socket(*kind)

    def ioctl(self, request, argument):
        if request == _POLL:
            poller = select.poll()
            poller.register(self._real, argument)
            found = poller.poll(0)
            return found[0][1] if found else 0
        return self._real.fileno() if request == _GET_FILENO else 0

    def __getattr__(self, name):
        # What is asked for but not written here goes over the air.
        if not network.routed():
            raise OSError(_EHOSTUNREACH if name == "connect" else _ECONNABORTED)
        return getattr(self._real, name)

    def close(self):
        self._real.close()

    def setblocking(self, flag):
        self._real.setblocking(flag)

    def settimeout(self, seconds):
        self._real.settimeout(seconds)

    def accept(self):
        raise OSError(_ECONNABORTED)  # nobody calls a virtual board
