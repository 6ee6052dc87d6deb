"""Certificates for tests, made with openssl: an authority, a server and clients."""

import shutil
import subprocess
from pathlib import Path

import pytest

DAYS = "30"


def make_certificates(directory: Path) -> None:
    """Write `NAME.crt` and `NAME.key` of each certificate; skip the test without openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: needs openssl to make certificates (apt install openssl)")
    make_authority(directory, "authority")
    make_authority(directory, "stranger")
    make_authority(directory, "itself", "basicConstraints=critical,CA:FALSE")
    for name, names in (
        ("server", "DNS:localhost,IP:127.0.0.1"),
        ("renewed", "DNS:localhost,IP:127.0.0.1"),
        ("client", "DNS:prometheus,IP:2001:db8::1,URI:spiffe://a/b,email:a@b.c"),
        ("other", "DNS:other"),
    ):
        make_signed(directory, name, names)
    make_signed(directory, "unknown", "DNS:prometheus", authority="stranger")
    lock = ["-aes128", "-passout", "pass:x", "-out", "locked.key"]
    _openssl(directory, "ec", "-in", "server.key", *lock)
    (directory / "empty.crt").write_text("-----BEGIN NOTHING-----\n")
    broken = (directory / "server.crt").read_text().replace("M", "N")
    (directory / "broken.crt").write_text(broken)


CAN_SIGN = "keyUsage=critical,digitalSignature,keyCertSign,cRLSign"
"""Without it, Python 3.13 rejects an authority (VERIFY_X509_STRICT)."""


def make_authority(directory: Path, name: str, extension: str = CAN_SIGN) -> None:
    """Make a self-signed certificate."""
    _make_key(directory, name)
    extensions = ["-addext", extension]
    subject = ["-subj", f"/CN={name}", "-days", DAYS]
    command = ["req", "-x509", "-new", "-key", f"{name}.key", "-out", f"{name}.crt"]
    _openssl(directory, *command, *subject, *extensions)


def make_signed(directory: Path, name: str, names: str, authority: str = "authority") -> None:
    """Make a certificate with some alternative names, signed by an authority."""
    _make_key(directory, name)
    request, extensions = f"{name}.csr", f"{name}.ext"
    (directory / extensions).write_text(
        f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    )
    command = ["req", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-out", request]
    _openssl(directory, *command)
    signer = ["-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial"]
    command = ["x509", "-req", "-in", request, "-out", f"{name}.crt", "-days", DAYS]
    _openssl(directory, *command, *signer, "-extfile", extensions)


def _make_key(directory: Path, name: str) -> None:
    curve = ["-name", "prime256v1"]
    _openssl(directory, "ecparam", "-genkey", "-noout", *curve, "-out", f"{name}.key")


def _openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)
