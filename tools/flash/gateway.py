"""The gateway as a board's maker needs it: is it there, a key for the board, is its reading in."""

import email.utils
import json
import os
import urllib.error
import urllib.request
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from gateway.config import TOKEN_VARIABLE
from tools import lan
from tools.flash import ask
from tools.flash.trouble import Trouble

USUAL_PORT = 8080
CABLE = "cable:"
TIMEOUT_S = 5.0
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is in our network


class Gateway:
    """url: as the board will know it. door: as this machine asks it, for the operator's token is
    taken from its own machine only, unless it travels over https."""

    def __init__(self, url: str, token: str | None) -> None:
        self.is_cable = is_cable(url)
        self.url = CABLE if self.is_cable else url
        beyond = url.removeprefix(CABLE) or f"http://127.0.0.1:{USUAL_PORT}"
        self.door = beyond if self.is_cable else _door(url)
        self._token = token

    def require_alive(self) -> None:
        """Raise Trouble unless it answers at the address that the board will use."""
        url = self.door if self.is_cable else self.url
        why = _not_alive(url)
        if why is None:
            return
        if not self.is_cable and _is_ours(self.url) and _not_alive(_at_loopback(self.url)) is None:
            raise Trouble("gateway_on_loopback", url=self.url)
        raise Trouble("gateway_down", url=url, why=why)

    def key(self, device: str) -> str:
        """Register the device and return its key, 64 hex digits. Raises Trouble."""
        answer, _ = self._ask("POST", "/v1/devices", json.dumps({"device": device}).encode())
        return str(answer["key"])

    def now_ms(self) -> int:
        """Return the gateway's own time, to the second."""
        _, headers = self._ask("GET", "/healthz")
        return int(email.utils.parsedate_to_datetime(headers["Date"]).timestamp()) * 1000

    def stored_since(self, device: str, since_ms: int) -> dict[str, Any] | None:
        """Return the first reading that it received from the device since then."""
        query = f"device={quote(device)}&from={since_ms - 10_000}&limit=100"
        answer, _ = self._ask("GET", f"/v1/readings?{query}")
        fresh = (one for one in answer["readings"] if one["received_at_ms"] >= since_ms)
        return next(fresh, None)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[Any, Any]:
        if self._token is None:
            self._token = ask.secret("The gateway's operator token (data/operator.token): ")
        if not self._token:
            raise Trouble("no_token")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            self.door + path, data=body, headers=headers, method=method
        )
        try:
            with _NO_PROXY.open(request, timeout=TIMEOUT_S) as response:
                return json.load(response), response.headers
        except urllib.error.HTTPError as error:
            with error:
                said = _detail(error)
            if error.code in (401, 403):
                raise Trouble("token", said=said) from error
            raise Trouble("gateway_down", url=self.door, why=said) from error
        except (OSError, ValueError) as error:
            raise Trouble("gateway_down", url=self.door, why=_reason(error)) from error


def address_for(given: str | None, *, virtual: bool) -> str:
    """Return the gateway's address as this board must know it.

    Raises:
        Trouble: a real board would find nothing there, or this machine has no address to give.
    """
    if given and is_cable(given):
        return given
    if given:
        if not virtual and _is_loopback(given):
            raise Trouble("loopback", url=given)
        return given.rstrip("/")
    if virtual:
        return f"http://127.0.0.1:{USUAL_PORT}"
    found = lan.addresses()
    if not found:
        raise Trouble("no_lan")
    return f"http://{found[0]}:{USUAL_PORT}"


def is_cable(url: str | None) -> bool:
    """Return whether the board is to deliver over its cable: `cable:`, behind which may stand
    where this machine finds the gateway."""
    return url is not None and url.startswith(CABLE)


def token(data: Path) -> str | None:
    """Return the operator's token from the environment or from beside the database."""
    if told := os.environ.get(TOKEN_VARIABLE):
        return told.strip()
    try:
        return (data / "operator.token").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _not_alive(url: str) -> str | None:
    try:
        with _NO_PROXY.open(url + "/healthz", timeout=TIMEOUT_S) as response:
            is_ours = response.headers.get("Fieldpost-Protocol") is not None
            return None if is_ours else "something else answers there"
    except (OSError, ValueError) as error:
        return _reason(error)


def _door(url: str) -> str:
    return _at_loopback(url) if _is_ours(url) and url.startswith("http:") else url


def _at_loopback(url: str) -> str:
    return f"http://127.0.0.1:{urlsplit(url).port or 80}"


def _is_ours(url: str) -> bool:
    return _is_loopback(url) or urlsplit(url).hostname in lan.addresses()


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"it answers {error.code}"


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason)
