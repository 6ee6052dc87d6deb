"""One connection of the web server: heads of requests come, answers go, in clear or in TLS.

TLS is worked on memory: bytes from the socket are put in, and what comes out is sent on, by these
few lines rather than by asyncio, which keeps 280 KiB for each connection and holds an answer to be
taken when it only lies in a buffer of its own.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

Value = TypeVar("Value")

_CHUNK_BYTES = 16 * 1024
_SENT_AT_ONCE_BYTES = 64 * 1024
_END_OF_HEAD = b"\r\n\r\n"


class Connection:
    """A plain connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take over a connection that was just accepted."""
        self._reader = reader
        self._writer = writer
        self._received = bytearray()
        self.transport = writer.transport
        self.transport.set_write_buffer_limits(0)  # drained means that the kernel has it all

    @property
    def context(self) -> ssl.SSLContext | None:
        """What TLS is spoken by; None where it is not."""
        return None

    @property
    def peer(self) -> object:
        """Address of the client, as sockets have it."""
        return self._writer.get_extra_info("peername")

    async def begun(self) -> None:
        """Wait until the next head has begun to come."""
        if not self._received:
            self._received += await self.receive()

    async def head(self, most_bytes: int) -> bytes:
        """Give the next head; nothing where it is larger than `most_bytes`."""
        searched = 0
        while (end := self._received.find(_END_OF_HEAD, searched)) < 0:
            if len(self._received) > most_bytes:
                return b""
            searched = max(0, len(self._received) - len(_END_OF_HEAD) + 1)
            self._received += await self.receive()
        end += len(_END_OF_HEAD)
        head = bytes(self._received[:end])
        del self._received[:end]
        return head if end <= most_bytes else b""

    async def receive(self) -> bytes:
        """Give the bytes that come next; raises EOFError where none will."""
        received = await self._reader.read(_CHUNK_BYTES)
        if not received:
            raise EOFError
        return received

    async def send(self, data: bytes) -> None:
        """Send, and return when the kernel has it all."""
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """Let go of the connection; what was not sent yet is lost."""
        self.transport.abort()


class TlsConnection(Connection):
    """A connection in TLS; nothing goes over it before `shake_hands`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
    ) -> None:
        """Take over a connection that was just accepted."""
        super().__init__(reader, writer)
        self._context = context
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._leaving, server_side=True)

    @property
    def context(self) -> ssl.SSLContext | None:
        """What TLS is spoken by."""
        return self._context

    async def shake_hands(self) -> None:
        """Agree with the client; raises ssl.SSLError, which the client was told, where not."""
        await self._worked(self._tls.do_handshake)

    def certificate(self) -> dict[str, Any]:
        """Give the client's certificate as the ssl module has it; empty where there is none."""
        return dict(self._tls.getpeercert() or {})

    async def receive(self) -> bytes:
        """Give the bytes that come next; raises EOFError where none will."""
        received = await self._worked(partial(self._tls.read, _CHUNK_BYTES))
        if not received:
            raise EOFError
        return received

    async def send(self, data: bytes) -> None:
        """Send, and return when the kernel has it all."""
        snapshot = memoryview(data)
        for begin in range(0, len(snapshot), _SENT_AT_ONCE_BYTES):
            part = snapshot[begin : begin + _SENT_AT_ONCE_BYTES]
            await self._worked(partial(self._tls.write, part))

    async def send_in_clear(self, data: bytes) -> None:
        """Send to a client that does not know that this is TLS."""
        await super().send(data)

    def close(self) -> None:
        """Tell the client that this is the end, and let go of the connection."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()  # it would also wait for the client's farewell
        if not self.transport.is_closing():
            self._writer.write(self._leaving.read())
        super().close()

    async def _worked(self, step: Callable[[], Value]) -> Value:
        """Do what may need bytes of the client first, and send what it leaves to be sent."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._send_on()
                self._arrived.write(await super().receive())
            except ssl.SSLError:
                await self._send_on()
                raise
            else:
                await self._send_on()
                return result

    async def _send_on(self) -> None:
        if self._leaving.pending:
            await super().send(self._leaving.read())
