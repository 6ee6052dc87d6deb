"""Which certificates detection trusts, without a network."""

import ssl
from pathlib import Path

import pytest

from disksla.clouds.http_client.transport import trust_as_kubernetes


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Do a handshake in memory. Raise SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        try:
            sides[0].do_handshake()
        except ssl.SSLWantReadError:
            sides.reverse()
        else:
            sides.pop(0)


def contexts(
    certificates: Path, authority: str, certificate: str
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a client's and a server's; the client is as strict as Python 3.13 makes it."""
    client = ssl.create_default_context(cafile=certificates / f"{authority}.crt")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(
        certificates / f"{certificate}.crt", certificates / f"{certificate}.key"
    )
    return client, server


@pytest.mark.parametrize("authority", ["old", "old-between"])
def test_certificates_of_a_cluster_are_trusted(certificates: Path, authority: str) -> None:
    """A root without key identifiers and usages, and a certificate that it signed."""
    client, server = contexts(certificates, authority, "old-server")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, "localhost")
    trust_as_kubernetes(client)
    handshake(client, server, "localhost")


@pytest.mark.parametrize(
    ("authority", "certificate", "name"),
    [
        ("stranger", "server", "localhost"),
        ("itself", "server", "localhost"),
        ("old", "server", "localhost"),
        ("old-between", "old-server", "other"),
        ("authority", "other", "localhost"),
        ("unknown", "server", "localhost"),
    ],
)
def test_other_certificates_are_not(
    certificates: Path, authority: str, certificate: str, name: str
) -> None:
    client, server = contexts(certificates, authority, certificate)
    trust_as_kubernetes(client)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, name)
