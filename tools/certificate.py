"""A certificate of one's own for the gateway, which boards are given a copy of.

    python -m tools.certificate gateway.lan 192.168.1.5

writes the certificate and its key, and prints what `serve` and a board's config.json need. It is
its own authority: browsers warn of it, and a board that has the copy talks to nobody else.
"""

import argparse
import base64
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

# A board's clock stands in 2000 until its gateway has told it the time, over this very line.
_FROM, _UNTIL = datetime(1999, 1, 1), datetime(2049, 12, 31)


class Made(NamedTuple):
    certificate: bytes  # PEM
    key: bytes  # PEM, without a password
    for_boards: str  # base64 of the certificate's DER: `tls_cert` in a board's config.json


def make(names: Sequence[str]) -> Made:
    """Return a new certificate for a gateway that is reached under these names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectAlternativeName([_alternative(n) for n in names]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    return Made(
        made.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        base64.b64encode(made.public_bytes(Encoding.DER)).decode(),
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.certificate", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help="or address, as boards ask for it")
    parser.add_argument("--folder", type=Path, default=Path("data"), help="default: data")
    args = parser.parse_args(argv)
    made = make(args.names)
    certificate, key = args.folder / "tls.crt", args.folder / "tls.key"
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(opened, "wb") as file:
            file.write(made.key)
        certificate.write_bytes(made.certificate)
    except OSError as error:
        print(f"certificate: {error}", file=sys.stderr)
        return 2
    print(f"serve --tls-cert {certificate} --tls-key {key}")
    print(f'"gateway": "https://{args.names[0]}:8080", "tls_cert": "{made.for_boards}"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
