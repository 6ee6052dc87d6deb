"""A notification socket as systemd provides it (sd_notify(3)), which records messages."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NotifySocket:
    """Receives messages of sd_notify."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._received: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._socket.setblocking(False)

    def messages(self) -> list[str]:
        """Return all messages received so far."""
        try:
            while True:
                self._received.append(self._socket.recv(4096).decode())
        except BlockingIOError:
            return self._received

    def is_silent_for(self, seconds: float) -> bool:
        """Return whether no message arrives within this time."""
        self.messages()
        self._socket.settimeout(seconds)
        try:
            self._received.append(self._socket.recv(4096).decode())
        except TimeoutError:
            return True
        finally:
            self._socket.setblocking(False)
        return False

    def close(self) -> None:
        self._socket.close()


@contextmanager
def notify_socket(path: Path | str) -> Iterator[NotifySocket]:
    systemd = NotifySocket(str(path))
    try:
        yield systemd
    finally:
        systemd.close()
