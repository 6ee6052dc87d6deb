"""A proxy of NFS that throttles: `nfs_proxy.py PORT KIND RATE LOG`, in the virtual machine.

KIND is `requests` (RPC messages to the server) or `bytes` (both ways). What exceeds the rate
waits; each wait is a line of the log, its begin and end by CLOCK_MONOTONIC.
"""

import socket
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from support.token_bucket import TokenBucket

_SERVER = ("127.0.0.1", 2049)
_DEPTH_S = 0.1
_LAST_FRAGMENT = 2**31


class Bucket:
    """The limit, over all connections."""

    def __init__(self, rate: float, log: TextIO) -> None:
        self._bucket, self._filled_s = TokenBucket(rate, rate * _DEPTH_S), 0.0
        self._log = log
        self._lock = threading.Lock()

    def admitted_s(self, amount: float, now_s: float) -> float:
        """Return when an amount is admitted that is asked for now; it is taken."""
        self._bucket.fill(now_s - self._filled_s)
        self._filled_s = now_s
        wait_s = max(0.0, self._bucket.wait_s())
        self._bucket.tokens -= amount
        return now_s + wait_s

    def take(self, amount: float) -> None:
        """Wait until this amount is admitted."""
        with self._lock:
            begun_s = time.monotonic()
            until_s = self.admitted_s(amount, begun_s)
            if until_s > begun_s:
                time.sleep(until_s - begun_s)
                self._log.write(f"{begun_s:.4f} {time.monotonic():.4f}\n")


def _exactly(sender: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = sender.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def message(sender: socket.socket) -> bytes:
    """Return the next RPC message, with the marks of its fragments (RFC 5531, section 11)."""
    data, is_last = b"", False
    while not is_last:
        mark = _exactly(sender, 4)
        number = int.from_bytes(mark, "big")
        is_last = number >= _LAST_FRAGMENT
        data += mark + _exactly(sender, number % _LAST_FRAGMENT)
    return data


def _forward(sender: socket.socket, receiver: socket.socket, bucket: Bucket, cost: str) -> None:
    try:
        while True:
            data = message(sender)
            if cost:
                bucket.take(len(data) if cost == "bytes" else 1)
            receiver.sendall(data)
    except (EOFError, OSError):
        for each in (sender, receiver):
            each.close()


def main(port: int, kind: str, rate: float, log: Path) -> None:
    """Forward until the end."""
    with (
        log.open("w", buffering=1) as waits,
        socket.create_server(("127.0.0.1", port)) as listener,
    ):
        bucket = Bucket(rate, waits)
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(_SERVER)
            replies = kind if kind == "bytes" else ""
            for arguments in ((client, server, bucket, kind), (server, client, bucket, replies)):
                threading.Thread(target=_forward, args=arguments, daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), Path(sys.argv[4]))
