"""Asks the daemon on this machine for its disks, or another of its pages.

Without a URL, it is asked over its Unix socket where there is one that this user may use, else
over its port on loopback.
"""

import http.client
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from disksla.api.disks_document import DISKS_PATH, DisksDocument
from disksla.api.refusals import OK, REFUSALS
from disksla.errors import DECODE_ERRORS, DiskslaError
from disksla.system.unix_socket import DEFAULT_SOCKET
from disksla.units import MIB

SOCKET_URL = f"unix://{DEFAULT_SOCKET}"
DEFAULT_URL = "http://127.0.0.1:10056/metrics"
"""Of the port, which is asked where the socket cannot be used."""
NO_ANSWER = (OSError, http.client.HTTPException)
"""What is raised without an answer."""
_TIMEOUT_S = 5.0
_MAX_BYTES = 16 * MIB


class DaemonAddress(NamedTuple):
    """Where the metrics of a daemon are."""

    scheme: str
    host: str
    port: int | None
    path: str
    socket: str = ""
    """Path of the Unix socket; empty for a port."""

    def __str__(self) -> str:
        """Return the URL."""
        if self.socket:
            return f"unix://{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def parse_url(text: str) -> DaemonAddress:
    """Return the address of the metrics. Raise DiskslaError if it is not of this machine."""
    try:
        parts = urlsplit(text)
        host, path = parts.hostname or "", parts.path.rstrip("/")
        if parts.scheme == "unix" and path.startswith("/") and not host and text.isprintable():
            return DaemonAddress("unix", "localhost", None, "/metrics", path)
        address = DaemonAddress(parts.scheme, host, parts.port, path or "/metrics")
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    else:
        if is_local and address.scheme in {"http", "https"} and text.isprintable():
            return address
    raise DiskslaError(
        f"--url: found '{text}'; expected an address of this machine such as {DEFAULT_URL}"
        f" or {SOCKET_URL}, because everything else that is examined is on it"
    )


def addresses_of(url: str | None) -> list[DaemonAddress]:
    """Return what is asked, one after the other. Raise DiskslaError, as `parse_url`."""
    if url is not None:
        return [parse_url(url)]
    urls = (SOCKET_URL, DEFAULT_URL) if os.path.lexists(DEFAULT_SOCKET) else (DEFAULT_URL,)
    return [parse_url(each) for each in urls]


def ask_disks(
    url: str | None, why_not: Callable[[str], None] = lambda _: None
) -> DisksDocument | None:
    """Return what the daemon knows of its disks; None if it does not say, after `why_not`.

    Raise DiskslaError if the URL is not of this machine.
    """
    reasons = []
    for address in addresses_of(url):
        try:
            status, page = get_page(address, DISKS_PATH)
            if status == OK:
                return msgspec.json.decode(page, type=DisksDocument)
            reason = REFUSALS.get(status, f"it answers with status {status}")
        except NO_ANSWER as error:
            reason = reason_of(error)
        except DECODE_ERRORS:
            reason = "its answer is not that of this version of disksla"
        reasons.append(f"{str(address).removesuffix('/metrics')}: {reason}")
    why_not("; ".join(reasons))
    return None


def reason_of(error: OSError | http.client.HTTPException) -> str:
    """Return why there is no answer."""
    match error:
        case ssl.SSLError():
            return f"TLS failed ({error.reason}); it may need a client certificate, or speak HTTP"
        case TimeoutError():
            return f"none within {_TIMEOUT_S:.0f} s"
        case OSError():
            return error.strerror or str(error)
        case _:
            return f"it does not speak HTTP: {type(error).__name__}"


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect. Raise OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


def get_page(address: DaemonAddress, target: str) -> tuple[int, str]:
    """Return the status and the text of a page. Raise one of NO_ANSWER."""
    connection: http.client.HTTPConnection
    if address.socket:
        connection = _UnixConnection(address.socket)
    elif address.scheme == "https":
        # The name in the certificate is not that of loopback, and no secret is sent.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 -- as above
        connection = http.client.HTTPSConnection(
            address.host, address.port, timeout=_TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read(_MAX_BYTES).decode(errors="replace")
    finally:
        connection.close()
