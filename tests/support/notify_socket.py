"""A socket that hears what a service says of itself, as systemd's does."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Ear:
    """Hears messages of sd_notify."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._socket.setblocking(False)

    def listen(self) -> list[str]:
        """Give all that was ever said."""
        try:
            while True:
                self.heard.append(self._socket.recv(4096).decode())
        except BlockingIOError:
            return self.heard

    def is_silent_for(self, seconds: float) -> bool:
        """Listen for so long, and tell whether nothing was said."""
        self.listen()
        self._socket.settimeout(seconds)
        try:
            self.heard.append(self._socket.recv(4096).decode())
        except TimeoutError:
            return True
        finally:
            self._socket.setblocking(False)
        return False

    def close(self) -> None:
        self._socket.close()


@contextmanager
def listening(place: Path | str) -> Iterator[Ear]:
    ear = Ear(str(place))
    try:
        yield ear
    finally:
        ear.close()
