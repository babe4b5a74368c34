"""The listening socket and its certificate; what can not be had says what to do."""

import errno
import socket
import ssl

from gateway.errors import Misconfigured


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the first address of `host`, an IPv4 one if it has any.

    Raises:
        Misconfigured: port in use or forbidden, host not of this machine.
    """
    family, address = _resolve(host, port)
    try:
        return socket.create_server(
            address,
            family=family,
            backlog=128,  # asyncio accepts so many at a go, and must find files for them
            dualstack_ipv6=address[0] == "::" and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise Misconfigured(_advice(error, host, port)) from error


def certificate(chain: str, key: str) -> ssl.SSLContext:
    """Return a context that serves the certificate.

    Raises:
        Misconfigured: a file is not there, is no PEM, or the two do not belong together.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # what boards speak; a system may allow less
    try:
        # Without a password of ours OpenSSL would stop and ask for one on the terminal.
        context.load_cert_chain(chain, key, password="")
    except (OSError, ValueError) as error:
        raise Misconfigured(
            f"--tls-cert {chain} and --tls-key {key} can not be used ({error}): both must be PEM"
            " files that belong together, the key without a password"
        ) from error
    return context


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Misconfigured(f"--host {host} is not known here: {error}") from error
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    family, _type, _protocol, _name, address = found[0]
    return family, (str(address[0]), port)


def _advice(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use: see by whom with `ss -ltnp 'sport = :{port}'`"
            f" (macOS: `lsof -i :{port}`), or take another with --port (0: any free one)"
        )
    if error.errno == errno.EACCES:
        return f"port {port} is for the system only: take one from 1024 up with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host} is no address of this machine; 0.0.0.0 listens on all of them"
    return f"can not listen on {host} port {port}: {error.strerror}"
