"""A crowd of clients of one kind, in a process of its own: `crowd.py KIND PORT AUTHORITY COUNT`.

It says `begun` when all of them are under way, and goes on until it is killed.
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
GRACE_S = 0.2


class Crowd:
    """What the clients share."""

    def __init__(self, port: int, authority: str) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=authority)

    def plain(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=TIMEOUT_S)

    def secured(self) -> ssl.SSLSocket:
        return self._context.wrap_socket(self.plain(), server_hostname="localhost")

    def scraper(self, credentials: Callable[[], str]) -> None:
        """Scrape again and again, on one connection as long as it is kept."""
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

    def waiter(self, connect: Callable[[], socket.socket], says: bytes) -> None:
        """Connect, say something now and then, and come back when dropped."""
        while True:
            with suppress(OSError), connect() as connection:
                connection.settimeout(GRACE_S)
                while True:
                    if says:
                        connection.sendall(says)
                    try:
                        if not connection.recv(1):
                            break
                    except TimeoutError:
                        continue
            time.sleep(GRACE_S)

    def handshaker(self) -> None:
        """Agree on TLS again and again, and ask for nothing."""
        while True:
            with suppress(OSError):
                self.secured().close()


def main() -> None:
    """Begin all of them."""
    kind, port, authority, count = sys.argv[1:]
    crowd = Crowd(int(port), authority)
    numbers = itertools.count()
    behaviour: dict[str, Callable[[], None]] = {
        "scrapers": lambda: crowd.scraper(lambda: "prometheus:correct horse"),
        "guessers": lambda: crowd.scraper(lambda: f"prometheus:{next(numbers)}"),
        "silent": lambda: crowd.waiter(crowd.plain, b""),
        "idle": lambda: crowd.waiter(crowd.secured, b""),
        "slow": lambda: crowd.waiter(crowd.secured, b"G"),
        "handshakers": crowd.handshaker,
    }
    threading.stack_size(256 * 1024)
    for _ in range(int(count)):
        threading.Thread(target=behaviour[kind], daemon=True).start()
    print("begun", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
