"""The byte stream of one client connection, unencrypted; `TlsStream` in tls.py encrypts it."""

import asyncio
import ssl

CHUNK_BYTES = 16 * 1024
"""The most that is received at once."""
_SEND_BYTES = 64 * 1024
"""The most that asyncio copies while the kernel does not take it."""


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

    def close(self) -> None:
        """Close the connection; what was not sent yet is lost."""
        self.transport.abort()
