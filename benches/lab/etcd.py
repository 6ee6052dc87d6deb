"""A server of etcd on a file system of the lab, and clients that put keys."""

import base64
import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from lab.scenario import EtcdServer, Phase
from lab.server import as_user, own_directory, running

PROGRAMS = ("etcd",)
_VALUE = base64.b64encode(bytes(512)).decode()
_KEYS = 1000
_TIMEOUT_S = 60.0


class Etcd(NamedTuple):
    """A server that runs."""

    address: str

    def run(self, phase: Phase) -> None:
        """Put keys from several clients for a time, each one after another."""
        ends_s = time.monotonic() + phase.seconds
        clients = range(phase.etcd_writers or 1)
        with ThreadPoolExecutor(len(clients)) as executor:
            list(executor.map(lambda client: self._put_until(ends_s, client), clients))

    def is_ready(self) -> bool:
        """Return whether it stores a key."""
        with suppress(OSError):
            self.put(0)
            return True
        return False

    def put(self, key: int) -> None:
        """Store a key by the gateway of HTTP. Raise OSError if that fails."""
        encoded = base64.b64encode(f"{key}".encode()).decode()
        body = json.dumps({"key": encoded, "value": _VALUE}).encode()
        address = f"{self.address}/v3/kv/put"
        with urllib.request.urlopen(address, body, timeout=_TIMEOUT_S) as response:
            response.read()

    def _put_until(self, ends_s: float, client: int) -> None:
        number = client
        while time.monotonic() < ends_s:
            self.put(number % _KEYS)
            number += 37


@contextmanager
def served(_: EtcdServer, file_system: Path) -> Iterator[Etcd]:
    """Run a server until the end of the block."""
    data = own_directory(file_system / "data")
    client, peer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
    options = (
        f"--data-dir={data}",
        *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
        *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
        *(f"--initial-cluster=default={peer}", "--log-level=error"),
    )
    etcd = Etcd(client)
    with running(as_user("etcd", *options), file_system, etcd.is_ready):
        yield etcd


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
