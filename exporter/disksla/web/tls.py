"""TLS as the web configuration wants it: from certificates and wishes to Python's context."""

import ipaddress
import os
import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from disksla.web.config import CURVES, TlsServer, TlsVersion

_VERSIONS: dict[TlsVersion, ssl.TLSVersion] = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
_NAMED_IN_CERTIFICATES = {"DNS", "email", "URI", "IP Address"}


class CertificateFiles(NamedTuple):
    """What the server shows, and holds clients' certificates against, in PEM."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None
    """None for the authorities that the system trusts."""


def make_context(tls: TlsServer, papers: CertificateFiles) -> ssl.SSLContext:
    """Give the context; raises ValueError with what is wrong with the papers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _show(context, papers)
    try:
        _speak(context, tls)
    except ssl.SSLError as error:
        raise ValueError(f"OpenSSL cannot do what is asked for: {_reason(error)}") from error
    if tls.client_auth in {"VerifyClientCertIfGiven", "RequireAndVerifyClientCert"}:
        required = tls.client_auth == "RequireAndVerifyClientCert"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        # As Go has it: a certificate that is given to be trusted is, whoever signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if papers.client_ca is None:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    if papers.client_ca is not None:
        try:
            context.load_verify_locations(cadata=papers.client_ca.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise ValueError(
                "client_ca_file or client_ca holds no certificates; expected some in PEM"
            ) from error
    return context


def names_of(certificate: dict[str, Any]) -> set[str]:
    """Give the alternative names that a certificate is for, as Go writes them."""
    return {
        _address(name) if kind == "IP Address" else name
        for kind, name in certificate.get("subjectAltName", ())
        if kind in _NAMED_IN_CERTIFICATES
    }


def _address(text: str) -> str:
    """Write an IP address as Go does: short, small letters."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # OpenSSL's word for what is none
        return text
    return str(getattr(address, "ipv4_mapped", None) or address)


def _show(context: ssl.SSLContext, papers: CertificateFiles) -> None:
    if b"-----BEGIN CERTIFICATE-----" not in papers.certificate:
        raise ValueError("cert_file or cert holds no certificate; expected one in PEM")
    if b"PRIVATE KEY-----" not in papers.key:
        raise ValueError("key_file or key holds no private key; expected one in PEM")
    if b"ENCRYPTED" in papers.key:
        raise ValueError("the private key is encrypted; expected one that needs no password")
    try:
        with _readable(papers.certificate) as certificate, _readable(papers.key) as key:
            context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError("certificate and private key do not belong together") from error
        raise ValueError(
            f"OpenSSL cannot use certificate and private key: {_reason(error)}"
        ) from error


def _speak(context: ssl.SSLContext, tls: TlsServer) -> None:
    """Set what is spoken. Nothing is resumed: clients stay connected, and sessions take room."""
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    minimum = tls.min_version if tls.old_ciphers else "TLS13"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # who asks for TLS 1.0 was told
        context.minimum_version = _VERSIONS[minimum]
        context.maximum_version = _VERSIONS[tls.max_version]
    if tls.old_ciphers:
        # OpenSSL speaks what is older than TLS 1.2 at its lowest level of security only.
        level = ":@SECLEVEL=0" if minimum < "TLS12" else ""
        context.set_ciphers(":".join(tls.old_ciphers) + level)
    if not tls.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    for curve in tls.curve_preferences:
        try:
            context.set_ecdh_curve(CURVES[curve])
        except ssl.SSLError as error:  # X25519, to Python 3.11.2, which Debian 12 has
            raise ValueError(
                f"curve_preferences: this Python cannot be held to {curve}; expected another"
                " curve, or none named, by which all are spoken"
            ) from error


@contextmanager
def _readable(data: bytes) -> Iterator[str]:
    """Lend a path to what lies in memory only: Python loads certificates from paths."""
    descriptor = os.memfd_create("papers")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "no reason given").replace("_", " ").lower()
