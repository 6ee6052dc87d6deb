"""TLS: contexts from the web configuration, and the encrypted stream of a connection."""

import asyncio
import ipaddress
import os
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from disksla.serve.http_server.config import CURVES, CertificateFiles, TlsServer, TlsVersion
from disksla.serve.http_server.connection import CHUNK_BYTES, ByteStream, HandshakeError

Value = TypeVar("Value")

_SEND_BYTES = 64 * 1024
"""Encrypted and handed to the kernel at once."""

_VERSIONS: dict[TlsVersion, ssl.TLSVersion] = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
_SAN_KINDS = {"DNS", "email", "URI", "IP Address"}


class TlsContext(ssl.SSLContext):
    """A context that wraps connections in `TlsStream`."""

    def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> "TlsStream":
        """Wrap a connection that was just accepted."""
        return TlsStream(reader, writer, self)


class TlsStream(ByteStream):
    """An encrypted connection; nothing can be sent or received before `do_handshake`.

    TLS runs on memory buffers, not in asyncio's SSLProtocol, which needs 280 KiB for each
    connection and counts a response as sent as soon as it is encrypted (ADR 18).
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: TlsContext
    ) -> None:
        """Wrap a connection that was just accepted."""
        super().__init__(reader, writer)
        self._context = context
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    @property
    def context(self) -> TlsContext:
        """The TLS context of the connection."""
        return self._context

    async def do_handshake(self) -> None:
        """Do the TLS handshake. Raise HandshakeError if it fails, after sending the alert."""
        try:
            await self._run(self._tls.do_handshake)
        except ssl.SSLError as error:
            raise HandshakeError(str(error), is_http=error.reason == "HTTP_REQUEST") from error

    def client_names(self) -> set[str]:
        """Return the alternative names of the client's certificate; empty without one."""
        return alternative_names(dict(self._tls.getpeercert() or {}))

    async def receive(self) -> bytes:
        """Return the next bytes, at least one. Raise EOFError at the end of the stream."""
        received = await self._run(partial(self._tls.read, CHUNK_BYTES))
        if not received:
            raise EOFError
        return received

    async def send(self, data: bytes) -> None:
        """Send, and return when the kernel has all of it."""
        remaining = memoryview(data)
        while remaining:
            written = await self._run(partial(self._tls.write, remaining[:_SEND_BYTES]))
            remaining = remaining[written:]

    def close(self) -> None:
        """Send the client the end of the stream, and close the connection."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()  # raises because the client's answer is not waited for
        if not self.transport.is_closing():
            self._writer.write(self._outgoing.read())
        super().close()

    async def _run(self, step: Callable[[], Value]) -> Value:
        """Run a step of TLS; receive bytes as it needs them, and send those that it produces."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._flush()
                self._incoming.write(await super().receive())
            except ssl.SSLError:
                await self._flush()
                raise
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await super().send(self._outgoing.read())


def make_context(tls: TlsServer, files: CertificateFiles) -> TlsContext:
    """Return the context. Raise ValueError if certificates or settings cannot be used."""
    context = TlsContext(ssl.PROTOCOL_TLS_SERVER)
    _load_certificate(context, files)
    try:
        _apply_settings(context, tls)
    except ssl.SSLError as error:
        raise ValueError(f"OpenSSL rejected the TLS settings: {_reason(error)}") from error
    if tls.client_auth in {"VerifyClientCertIfGiven", "RequireAndVerifyClientCert"}:
        required = tls.client_auth == "RequireAndVerifyClientCert"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        # As in Go: a certificate in the list of authorities is trusted, whatever its issuer.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if files.client_ca is None:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    if files.client_ca is not None:
        try:
            context.load_verify_locations(cadata=files.client_ca.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise ValueError(
                "no certificates in client_ca_file or client_ca; expected at least one in PEM"
            ) from error
    return context


def alternative_names(certificate: dict[str, Any]) -> set[str]:
    """Return the subject alternative names of a certificate, in the notation of Go."""
    return {
        _format_address(name) if kind == "IP Address" else name
        for kind, name in certificate.get("subjectAltName", ())
        if kind in _SAN_KINDS
    }


def _format_address(text: str) -> str:
    """Format an IP address as Go does: shortened, in lower case."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # OpenSSL writes <invalid>
        return text
    return str(getattr(address, "ipv4_mapped", None) or address)


def _load_certificate(context: ssl.SSLContext, files: CertificateFiles) -> None:
    if b"-----BEGIN CERTIFICATE-----" not in files.certificate:
        raise ValueError("no certificate in cert_file or cert; expected one in PEM")
    if b"PRIVATE KEY-----" not in files.key:
        raise ValueError("no private key in key_file or key; expected one in PEM")
    if b"ENCRYPTED" in files.key:
        raise ValueError("the private key is encrypted; expected one without a password")
    try:
        with _as_file(files.certificate) as certificate, _as_file(files.key) as key:
            context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError("the private key does not match the certificate") from error
        raise ValueError(f"cannot load certificate and private key: {_reason(error)}") from error


def _apply_settings(context: ssl.SSLContext, tls: TlsServer) -> None:
    """Set versions, ciphers and curves; disable session resumption.

    Scrapers keep their connections, and each stored session would need memory.
    """
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    minimum = tls.min_version if tls.old_ciphers else "TLS13"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TLS 1.0 is only used if configured
        context.minimum_version = _VERSIONS[minimum]
        context.maximum_version = _VERSIONS[tls.max_version]
    if tls.old_ciphers:
        # OpenSSL has versions older than TLS 1.2 at its lowest security level only.
        level = ":@SECLEVEL=0" if minimum < "TLS12" else ""
        context.set_ciphers(":".join(tls.old_ciphers) + level)
    if not tls.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    for curve in tls.curve_preferences:
        try:
            context.set_ecdh_curve(CURVES[curve])
        except ssl.SSLError as error:  # X25519 up to Python 3.11.2, which Debian 12 has
            raise ValueError(
                f"curve_preferences: this Python cannot restrict TLS to {curve}; expected another"
                " curve, or an empty list to allow all"
            ) from error


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Yield a path to data in memory: Python loads certificates from paths only."""
    descriptor = os.memfd_create("certificate")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "no reason given").replace("_", " ").lower()
