"""Listen addresses: parse HOST:PORT, and bind the sockets."""

import os
import re
import socket
from typing import NamedTuple

from disksla import DEFAULT_PORT
from disksla.base.errors import DiskslaError

DEFAULT_LISTEN_ADDRESS = f":{DEFAULT_PORT}"
BACKLOG = 1024
"""Connections that the kernel queues until they are accepted; clients retry others after 1 s."""

_ADDRESS = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[\w.-]+)?)\]|(?P<host>[\w.-]*))"
    r":(?P<port>\d{1,5})",
    re.ASCII,
)
_HIGHEST_PORT = 65535


class ListenAddress(NamedTuple):
    """Host and port to listen on; an empty host is every address, IPv6 and IPv4."""

    host: str
    port: int
    """0 for one that the kernel chooses."""

    def __str__(self) -> str:
        """Return `:10056`, `127.0.0.1:80` or `[::1]:80`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """Parse `HOST:PORT`, `[IPV6]:PORT` or `:PORT`. Raise DiskslaError for anything else."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise DiskslaError(
            f"invalid listen address '{text}': expected HOST:PORT, [IPV6]:PORT or :PORT,"
            f" such as {DEFAULT_LISTEN_ADDRESS} or 127.0.0.1{DEFAULT_LISTEN_ADDRESS}"
        )
    return ListenAddress(match["ipv6"] or match["host"] or "", int(match["port"]))


Listen = ListenAddress | socket.socket
"""An address to listen on, or a socket that listens already."""


def bind(address: Listen) -> socket.socket:
    """Return a listening socket. Raise DiskslaError if the address cannot be used."""
    if isinstance(address, socket.socket):
        return address
    try:
        if not address.host:
            return _bind_all_addresses(address.port)
        family, _, _, _, resolved = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(resolved, family=family, backlog=BACKLOG)
    except UnicodeError as error:  # a label of the name has more than 63 characters
        raise DiskslaError(f"cannot listen on {address}: {error}") from error
    except socket.gaierror as error:
        raise DiskslaError(f"cannot listen on {address}: {error.strerror}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DiskslaError(f"cannot listen on {address}: {reason}") from error


def bound_address(listen: Listen, bound: socket.socket) -> ListenAddress:
    """Return the address of a bound socket, with the port that the kernel chose."""
    host, port = bound.getsockname()[:2]
    if isinstance(listen, ListenAddress):
        return ListenAddress(listen.host, port)
    return ListenAddress("" if host in {"::", "0.0.0.0"} else host, port)  # noqa: S104 -- compared


def _bind_all_addresses(port: int) -> socket.socket:
    """Return one socket for IPv6 and IPv4, or for IPv4 if the kernel has no IPv6."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    return socket.create_server(("", port), backlog=BACKLOG)
