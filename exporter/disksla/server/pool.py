"""The connections whose client is waited for."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from disksla.server.connection import ByteStream
from disksla.server.waiting import Waiting, client_of


class ClientPool:
    """Connections whose client is waited for: at most `most`.

    Above that, the oldest one of the client with the most is disconnected. So a new client is
    always accepted, and one that opens many connections loses its own only.
    """

    def __init__(self, most: int) -> None:
        """Begin without connections."""
        self.most = most
        self._waiting: Waiting[asyncio.WriteTransport] = Waiting()

    @contextmanager
    def add(self, stream: ByteStream) -> Iterator[None]:
        """Keep a connection in the pool during the block."""
        client = client_of(stream.peer)
        self._waiting.add(client, stream.transport)
        if len(self._waiting) > self.most:
            self.disconnect_one()
        try:
            yield
        finally:
            self._waiting.discard(client, stream.transport)

    def disconnect_one(self) -> bool:
        """Disconnect the oldest one of the client with the most; return whether there was one."""
        if not self._waiting:
            return False
        self._waiting.take_oldest_of_most().abort()
        return True
