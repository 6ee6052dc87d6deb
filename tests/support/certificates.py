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
    make_old(directory)
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


def make_old(directory: Path) -> None:
    """Make certificates as some clusters of Kubernetes have them, of EKS for instance.

    They have no identifiers of keys and no usages. `old` is self-signed; it has signed
    `old-between`, which has signed `old-server`, and is appended to it.
    """
    without = "subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n"
    of_authority = f"basicConstraints=critical,CA:TRUE\n{without}"
    (directory / "old.cnf").write_text(
        f"[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n[ext]\n{of_authority}"
    )
    _make_key(directory, "old")
    command = ["req", "-x509", "-new", "-config", "old.cnf", "-key", "old.key"]
    _openssl(directory, *command, "-subj", "/CN=old", "-days", DAYS, "-out", "old.crt")
    _sign(directory, "old-between", of_authority, "old")
    _sign(directory, "old-server", f"subjectAltName=DNS:localhost\n{without}", "old-between")
    with (directory / "old-server.crt").open("a") as chain:
        chain.write((directory / "old-between.crt").read_text())


def make_signed(directory: Path, name: str, names: str, authority: str = "authority") -> None:
    """Make a certificate with some alternative names, signed by an authority."""
    identifiers = "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    _sign(directory, name, f"subjectAltName={names}\n{identifiers}", authority)


def _sign(directory: Path, name: str, content: str, authority: str) -> None:
    _make_key(directory, name)
    request, extensions = f"{name}.csr", f"{name}.ext"
    (directory / extensions).write_text(content)
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
