"""How often somebody may bring a wrong token or link: by address, and all together."""

import math
import time
from collections.abc import Callable

from aiohttp import web

from gateway.errors import TooOften
from gateway.web import peer
from gateway.web.bucket import Buckets

# Secrets here have 256 random bits, so nobody guesses one: this bounds the work that trying makes.
_AT_ONCE = 20
_A_MINUTE = 20
_ALL_AT_ONCE = 200
_ALL_A_MINUTE = 200
_ALL = "all"


class Tries:
    """Counts wrong tokens and links. This machine has a count of its own, which no other fills.

    Args:
        monotonic: seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._by_address = Buckets(_AT_ONCE, _A_MINUTE)
        self._all = Buckets(_ALL_AT_ONCE, _ALL_A_MINUTE)

    def require(self, request: web.Request) -> None:
        """Raise TooOften if there were so many that not even a right one is looked at."""
        now_s = self._monotonic()
        wait_s = self._by_address.wait_s(_address(request), 1, now_s)
        if not peer.is_local(request):
            wait_s = max(wait_s, self._all.wait_s(_ALL, 1, now_s))
        if wait_s:
            raise TooOften("too many wrong tries came from there", math.ceil(wait_s))

    def count(self, request: web.Request) -> None:
        """Note a wrong one."""
        now_s = self._monotonic()
        self._by_address.take(_address(request), 1, now_s)
        if not peer.is_local(request):
            self._all.take(_ALL, 1, now_s)


def _address(request: web.Request) -> str:
    return request.remote or ""
