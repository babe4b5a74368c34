"""PURE: the link that logs an operator's browser in, as it is printed."""

from gateway.config import Config

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


def path(secret: str) -> str:
    return f"/login?t={secret}"


def base(config: Config, host: str, port: int) -> str:
    """Return the address of the gateway for a browser on its own machine: `http://…:8080`.

    Args:
        host: it listens on.
    """
    scheme = "https" if config.tls_cert else "http"
    name = _EVERYWHERE.get(host) or (f"[{host}]" if ":" in host else host)
    return f"{scheme}://{name}:{port}"
