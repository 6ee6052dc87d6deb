"""The byte stream of one client connection, unencrypted; `TlsStream` in tls.py encrypts it."""

import asyncio
import ssl

from disksla.base.errors import DiskslaError

CHUNK_BYTES = 16 * 1024
"""The most that is received at once."""
_SEND_BYTES = 64 * 1024
"""The most that asyncio copies while the kernel does not take it."""


class HandshakeError(DiskslaError):
    """A TLS handshake failed."""

    def __init__(self, message: str, *, is_http: bool = False) -> None:
        """Set what OpenSSL says, and whether the client sent an unencrypted request."""
        super().__init__(message)
        self.is_http = is_http


class ByteStream:
    """An unencrypted connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Wrap a connection that was just accepted."""
        self._reader = reader
        self._writer = writer
        self.transport = writer.transport
        self.transport.set_write_buffer_limits(0)  # drain() waits until the kernel has it all

    @property
    def context(self) -> ssl.SSLContext | None:
        """The TLS context of the connection; None if it is unencrypted."""
        return None

    @property
    def peer(self) -> str:
        """IP address of the client; empty for a Unix socket."""
        address = self._writer.get_extra_info("peername")
        return str(address[0]) if isinstance(address, tuple) else ""

    async def do_handshake(self) -> None:
        """Do the TLS handshake. Raise HandshakeError if it fails, after sending the alert."""

    def client_names(self) -> set[str]:
        """Return the alternative names of the client's certificate; empty without one."""
        return set()

    async def receive(self) -> bytes:
        """Return the next bytes, at least one. Raise EOFError at the end of the stream."""
        received = await self._reader.read(CHUNK_BYTES)
        if not received:
            raise EOFError
        return received

    async def send(self, data: bytes) -> None:
        """Send, and return when the kernel has all of it."""
        remaining = memoryview(data)
        while remaining:
            self._writer.write(remaining[:_SEND_BYTES])
            await self._writer.drain()
            remaining = remaining[_SEND_BYTES:]

    async def send_unencrypted(self, data: bytes) -> None:
        """Send to a client that does not use TLS."""
        await ByteStream.send(self, data)

    def close(self) -> None:
        """Close the connection; what was not sent yet is lost."""
        self.transport.abort()
