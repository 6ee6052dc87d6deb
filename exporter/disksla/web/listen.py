"""The web server: asyncio moves the bytes, cheroot reads requests, a few workers answer them.

A server that hands each connection to a worker, which then reads from the socket, is stopped by
as many slow clients as it has workers, and no time-out helps: they come back. So nobody here ever
waits for a client but one event loop, to which a waiting client costs a few kilobytes:

- A worker is given a request only when the last byte of its head has come, and hands back the
  whole answer. Its work is bounded by our own code.
- A client has only so long, in all, to send the head of a request and to take the answer
  (`Patience`), however its bytes are spread over that time.
- When too many clients are waited for, the one that has been waited for longest is dropped, so
  that a newcomer, such as a scrape, always gets in. Agreeing on TLS counts as waiting.
- Whether a request is to be answered (`Access`) is settled before a worker has it. Passwords are
  held against their hashes by a thread that does nothing else.

Bodies are not read: nothing here takes one. An answer to a request that announced a body is the
last of its connection.
"""

import os
import re
import socket
from typing import NamedTuple

from disksla.errors import DiskslaError

DEFAULT_LISTEN_ADDRESS = ":10056"
BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted; one it drops is retried after 1 s."""

_ADDRESS = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[\w.-]+)?)\]|(?P<host>[\w.-]*))"
    r":(?P<port>\d{1,5})",
    re.ASCII,
)
_HIGHEST_PORT = 65535


class ListenAddress(NamedTuple):
    """Where to listen; an empty host is every address, of IPv6 and IPv4."""

    host: str
    port: int
    """0 lets the kernel choose."""

    def __str__(self) -> str:
        """Give it as people write it: `:10056`, `127.0.0.1:80`, `[::1]:80`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """Read `HOST:PORT`, `[IPV6]:PORT` or `:PORT`. Raises Refusal for anything else."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise DiskslaError(
            f"'{text}' is not an address to listen on: expected HOST:PORT, [IPV6]:PORT or :PORT,"
            f" such as {DEFAULT_LISTEN_ADDRESS} or 127.0.0.1:10056"
        )
    return ListenAddress(match["ipv6"] or match["host"] or "", int(match["port"]))


Listen = ListenAddress | socket.socket
"""Where to listen, or a socket that listens already."""


def bind(address: Listen) -> socket.socket:
    """Give a listening socket. Raises Refusal."""
    if isinstance(address, socket.socket):
        return address
    try:
        if not address.host:
            return _bind_everywhere(address.port)
        family, _, _, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(where, family=family, backlog=BACKLOG)
    except UnicodeError as error:  # a part of the name is longer than any that can be looked up
        raise DiskslaError(f"cannot listen on {address}: {error}") from error
    except socket.gaierror as error:
        raise DiskslaError(f"cannot listen on {address}: {error.strerror}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DiskslaError(f"cannot listen on {address}: {reason}") from error


def bound_address(place: Listen, bound: socket.socket) -> ListenAddress:
    """Return the address of a bound socket, with the port that the kernel chose."""
    host, port = bound.getsockname()[:2]
    if isinstance(place, ListenAddress):
        return ListenAddress(place.host, port)
    return ListenAddress("" if host in {"::", "0.0.0.0"} else host, port)  # noqa: S104 -- read


def _bind_everywhere(port: int) -> socket.socket:
    """Listen on IPv6 and IPv4 with one socket, or on IPv4 where the kernel has no IPv6."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    return socket.create_server(("", port), backlog=BACKLOG)
