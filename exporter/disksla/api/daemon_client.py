"""Asks the daemon on this machine for its disks, or another of its pages.

Without a URL, it is asked over its Unix socket where there is one that this user may use, else
over its port on loopback.
"""

import http.client
import io
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from disksla.api.disks_document import DISKS_PATH, DisksDocument, LiveDiskDocument
from disksla.api.disks_query import target_of
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
"""For one page."""
_ALL_PAGES_S = 20.0
_MOST_PAGES = 200
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
    url: str | None, why_not: Callable[[str], None] = lambda _: None, names: Sequence[str] = ()
) -> DisksDocument | None:
    """Return what the daemon knows of these disks, by default of all; None after `why_not`.

    Raise DiskslaError if the URL is not of this machine.
    """
    reasons = []
    for address in addresses_of(url):
        try:
            return _all_pages(address, names)
        except _OtherAnswerError as error:
            reason = str(error)
        except NO_ANSWER as error:
            reason = reason_of(error)
        except DECODE_ERRORS:
            reason = "its answer is not that of this version of disksla"
        reasons.append(f"{str(address).removesuffix('/metrics')}: {reason}")
    why_not("; ".join(reasons))
    return None


def _all_pages(address: DaemonAddress, names: Sequence[str]) -> DisksDocument:
    """Return the pages of disks as one document.

    Raise one of NO_ANSWER or DECODE_ERRORS, or _OtherAnswerError.
    """
    disks: list[LiveDiskDocument] = []
    after: str | None = None
    end_s = time.monotonic() + _ALL_PAGES_S
    for _ in range(_MOST_PAGES):
        within_s = min(_TIMEOUT_S, end_s - time.monotonic())
        status, page = get_page(address, target_of(DISKS_PATH, names, after), within_s)
        if status != OK:
            raise _OtherAnswerError(REFUSALS.get(status, f"it answers with status {status}"))
        document = msgspec.json.decode(page, type=DisksDocument)
        disks += document.disks
        after = document.next
        if after is None:
            return msgspec.structs.replace(document, disks=tuple(disks))
    raise _OtherAnswerError(f"it has more than {_MOST_PAGES} pages of disks")


class _OtherAnswerError(DiskslaError):
    """The daemon answers, but not with its disks."""


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


class _Received(io.RawIOBase):
    """What a server sends, up to a monotonic time; http.client reads it as a socket."""

    def __init__(self, connection: socket.socket, end_s: float) -> None:
        self._connection = connection
        self._end_s = end_s

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the file that http.client reads."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive some bytes. Raise TimeoutError when the time is over."""
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)


def get_page(address: DaemonAddress, target: str, within_s: float = _TIMEOUT_S) -> tuple[int, str]:
    """Return the status and the text of a page. Raise one of NO_ANSWER.

    The whole answer must come in time, however the daemon spreads it.
    """
    end_s = time.monotonic() + within_s
    connection = _connection_to(address)
    try:
        connection.request("GET", target)
        received = _Received(connection.sock, end_s)
        response = http.client.HTTPResponse(received, method="GET")  # type: ignore[arg-type]
        response.begin()
        page = response.read(_MAX_BYTES + 1)
        if len(page) > _MAX_BYTES:
            raise OSError(f"the answer has more than {_MAX_BYTES // MIB} MiB")
        return response.status, page.decode(errors="replace")
    finally:
        connection.close()


def _connection_to(address: DaemonAddress) -> http.client.HTTPConnection:
    if address.socket:
        return _UnixConnection(address.socket)
    if address.scheme == "https":
        # The name in the certificate is not that of loopback, and no secret is sent.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 -- as above
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=_TIMEOUT_S, context=context
        )
    return http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
