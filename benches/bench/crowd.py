"""Many clients of one kind, in a separate process: `crowd.py KIND PORT AUTHORITY COUNT`.

Prints `begun` when all clients are started, and runs until it is killed.
"""

import base64
import http.client
import itertools
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

TIMEOUT_S = 20.0
PAUSE_S = 0.2


class Crowd:
    """The address and TLS context of all clients."""

    def __init__(self, port: int, authority: str) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=authority)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=TIMEOUT_S)

    def connect_tls(self) -> ssl.SSLSocket:
        return self._context.wrap_socket(self.connect(), server_hostname="localhost")

    def scraper(self, credentials: Callable[[], str]) -> None:
        """Scrape repeatedly, on one connection while the server keeps it open."""
        connection = http.client.HTTPSConnection(
            "localhost", self._port, timeout=TIMEOUT_S, context=self._context
        )
        while True:
            encoded = base64.b64encode(credentials().encode()).decode()
            try:
                connection.request(
                    "GET", "/metrics", headers={"Authorization": f"Basic {encoded}"}
                )
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()

    def waiter(self, connect: Callable[[], socket.socket], data: bytes) -> None:
        """Connect, send data from time to time, and reconnect when the connection is closed."""
        while True:
            with suppress(OSError), connect() as connection:
                connection.settimeout(PAUSE_S)
                while True:
                    if data:
                        connection.sendall(data)
                    try:
                        if not connection.recv(1):
                            break
                    except TimeoutError:
                        continue
            time.sleep(PAUSE_S)

    def handshaker(self) -> None:
        """Repeat TLS handshakes without a request."""
        while True:
            with suppress(OSError):
                self.connect_tls().close()


def main() -> None:
    """Start all clients."""
    kind, port, authority, count = sys.argv[1:]
    crowd = Crowd(int(port), authority)
    numbers = itertools.count()
    behaviour: dict[str, Callable[[], None]] = {
        "scrapers": lambda: crowd.scraper(lambda: "prometheus:correct horse"),
        "guessers": lambda: crowd.scraper(lambda: f"prometheus:{next(numbers)}"),
        "silent": lambda: crowd.waiter(crowd.connect, b""),
        "idle": lambda: crowd.waiter(crowd.connect_tls, b""),
        "slow": lambda: crowd.waiter(crowd.connect_tls, b"G"),
        "handshakers": crowd.handshaker,
    }
    threading.stack_size(256 * 1024)
    for _ in range(int(count)):
        threading.Thread(target=behaviour[kind], daemon=True).start()
    print("begun", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
