"""Asks the daemon on this machine for its disks, or another of its pages.

With a URL of another machine, that daemon is asked for its disks. Without a URL, the one on this
machine is asked over its Unix socket where there is one that this user may use, else over its port
on loopback.
"""

import http.client
import io
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from disksla import DEFAULT_PORT
from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.operating_system.unix_socket import DEFAULT_SOCKET
from disksla.base.units import MIB
from disksla.tell.api.disks_document import (
    DISKS_PATH,
    OK,
    REFUSALS,
    DisksDocument,
    LiveDiskDocument,
    target_of,
)

SOCKET_URL = f"unix://{DEFAULT_SOCKET}"
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}/metrics"
"""Of the port, which is asked where the socket cannot be used."""
NO_ANSWER = (OSError, http.client.HTTPException)
"""What is raised without an answer."""
_TIMEOUT_S = 5.0
"""For one page."""
_ALL_PAGES_S = 20.0
_MOST_PAGES = 200
_MAX_BYTES = 16 * MIB
_MOST_BYTES_OF_PAGES = 64 * MIB


class Access(NamedTuple):
    """What a daemon with TLS and passwords needs. Headers may hold secrets."""

    headers: Mapping[str, str] = {}
    authority: str | None = None
    """File of the certificates that its own has to be signed with; None for the system's."""

    def __repr__(self) -> str:
        """Return the name only."""
        return "Access()"


NO_ACCESS = Access()


class DaemonAddress(NamedTuple):
    """Where the metrics of a daemon are."""

    scheme: str
    host: str
    port: int | None
    path: str
    socket: str = ""
    """Path of the Unix socket; empty for a port."""
    is_local: bool = True
    """Whether it is on this machine, as the address says."""

    def __str__(self) -> str:
        """Return the URL."""
        if self.socket:
            return f"unix://{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def parse_url(text: str, *, any_host: bool = False) -> DaemonAddress:
    """Return the address of the metrics.

    Raise DiskslaError if it is none, or not of this machine unless `any_host`.
    """
    try:
        parts = urlsplit(text)
        host, path = parts.hostname or "", parts.path.rstrip("/")
        if parts.scheme == "unix" and path.startswith("/") and not host and text.isprintable():
            return DaemonAddress("unix", "localhost", None, "/metrics", path)
        address = DaemonAddress(
            scheme=parts.scheme,
            host=host,
            port=parts.port,
            path=path or "/metrics",
            is_local=_is_loopback(host),
        )
        has_secret = parts.username is not None
    except ValueError:
        pass
    else:
        is_allowed = address.is_local or (any_host and host and not has_secret)
        if is_allowed and address.scheme in {"http", "https"} and text.isprintable():
            return address
    shown = text.rpartition("@")[2]
    if any_host:
        raise DiskslaError(
            f"--url: found '{shown}'; expected an address such as http://db-1:{DEFAULT_PORT} or"
            f" {SOCKET_URL}, with passwords in --url.password-file"
        )
    raise DiskslaError(
        f"--url: found '{shown}'; expected an address of this machine such as {DEFAULT_URL}"
        f" or {SOCKET_URL}, because everything else that is examined is on it"
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_remote(url: str | None) -> bool:
    """Return whether a URL is of another machine. Raise DiskslaError if it is no URL."""
    return url is not None and not parse_url(url, any_host=True).is_local


def addresses_of(url: str | None, *, any_host: bool = False) -> list[DaemonAddress]:
    """Return what is asked, one after the other. Raise DiskslaError, as `parse_url`."""
    if url is not None:
        return [parse_url(url, any_host=any_host)]
    urls = (SOCKET_URL, DEFAULT_URL) if os.path.lexists(DEFAULT_SOCKET) else (DEFAULT_URL,)
    return [parse_url(each) for each in urls]


def ask_disks(
    url: str | None,
    why_not: Callable[[str], None] = lambda _: None,
    names: Sequence[str] = (),
    access: Access = NO_ACCESS,
) -> DisksDocument | None:
    """Return what the daemon knows of these disks, by default of all; None after `why_not`.

    Raise DiskslaError if the URL is none.
    """
    reasons = []
    for address in addresses_of(url, any_host=True):
        try:
            return _all_pages(address, names, access)
        except _OtherAnswerError as error:
            reason = str(error)
        except NO_ANSWER as error:
            reason = reason_of(error)
        except DECODE_ERRORS:
            reason = "its answer is not that of this version of disksla"
        reasons.append(f"{str(address).removesuffix('/metrics')}: {reason}")
    why_not("; ".join(reasons))
    return None


def _all_pages(address: DaemonAddress, names: Sequence[str], access: Access) -> DisksDocument:
    """Return the pages of disks as one document.

    Raise one of NO_ANSWER or DECODE_ERRORS, or _OtherAnswerError.
    """
    disks: list[LiveDiskDocument] = []
    after: str | None = None
    end_s = time.monotonic() + _ALL_PAGES_S
    left_bytes = _MOST_BYTES_OF_PAGES
    for _ in range(_MOST_PAGES):
        within_s = min(_TIMEOUT_S, end_s - time.monotonic())
        target = target_of(DISKS_PATH, names, after)
        status, page = get_page(address, target, within_s, access)
        left_bytes -= len(page)
        if left_bytes < 0:
            most = f"{_MOST_BYTES_OF_PAGES // MIB} MiB"
            raise _OtherAnswerError(f"its pages have more than {most} together")
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
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message}); see --url.ca-file"
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


def get_page(
    address: DaemonAddress, target: str, within_s: float = _TIMEOUT_S, access: Access = NO_ACCESS
) -> tuple[int, str]:
    """Return the status and the text of a page. Raise one of NO_ANSWER.

    The whole answer must come in time, however the daemon spreads it.
    """
    end_s = time.monotonic() + within_s
    connection = _connection_to(address, access)
    try:
        connection.request("GET", target, headers=dict(access.headers))
        received = _Received(connection.sock, end_s)
        response = http.client.HTTPResponse(received, method="GET")  # type: ignore[arg-type]
        response.begin()
        page = response.read(_MAX_BYTES + 1)
        if len(page) > _MAX_BYTES:
            raise OSError(f"the answer has more than {_MAX_BYTES // MIB} MiB")
        return response.status, page.decode(errors="replace")
    finally:
        connection.close()


def _connection_to(address: DaemonAddress, access: Access) -> http.client.HTTPConnection:
    if address.socket:
        return _UnixConnection(address.socket)
    if address.scheme == "https":
        if address.is_local and access == NO_ACCESS:
            # The name in the certificate is not that of loopback, and no secret is sent.
            context = ssl._create_unverified_context()  # noqa: S323, SLF001 -- as above
        else:
            context = ssl.create_default_context(cafile=access.authority)
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=_TIMEOUT_S, context=context
        )
    return http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
