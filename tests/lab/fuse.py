"""As much of the FUSE protocol as one regular file needs that is the root of its own mount.

Numbers and layouts: include/uapi/linux/fuse.h, protocol 7.38.
"""

import ctypes
import errno
import os
import stat
import struct
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from lab.limiter import Request

LARGEST_WRITE_BYTES = 2**20
_PAGE_BYTES = 4096

FORGET, GETATTR, SETATTR, OPEN, READ, WRITE = 2, 3, 4, 14, 15, 16
RELEASE, FSYNC, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 18, 20, 25, 26, 36, 42
_UNANSWERED = {FORGET, INTERRUPT, BATCH_FORGET}
_PLAIN = {RELEASE, FSYNC, FLUSH}

_IN_HEADER = struct.Struct("<IIQQIIIHH")
_OUT_HEADER = struct.Struct("<IiQ")
_TRANSFER = struct.Struct("<QQII")
"""File handle, offset, size, flags: the beginning of both READ and WRITE."""
_HEAD_BYTES = 80
"""Header and arguments of READ and WRITE; the data of a WRITE follow."""
_FOPEN_DIRECT_IO = 1 << 0
_FOPEN_PARALLEL_DIRECT_WRITES = 1 << 6
_INIT_FLAGS = 1 << 0 | 1 << 5 | 1 << 15 | 1 << 22
"""ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES: without them the kernel splits and queues."""
_MOST_IN_BACKGROUND = 4096


def mount(directory_entry: Path, kind: str = "disksla-lab") -> int:
    """Mount a file upon a file; give the descriptor that its requests are read from."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0"
    kind_words = (f"fuse.{kind}".encode(), 0, options.encode())
    words = (kind.encode(), bytes(directory_entry), *kind_words)
    if libc.mount(*words):
        number = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(number, os.strerror(number), str(directory_entry))
    return descriptor


class Gone(Exception):  # noqa: N818 -- not an error: the way a mount ends
    """The file system was unmounted."""


class Asked(NamedTuple):
    """What the kernel asked for."""

    unique: int
    opcode: int
    request: Request | None
    """For reads and writes."""


class Channel:
    """The kernel's requests for one file, whose content is `memory`."""

    def __init__(self, descriptor: int, memory: mmap) -> None:
        self.descriptor = descriptor
        self._size_bytes = len(memory)
        self._memory = memoryview(memory)
        self._head = bytearray(_HEAD_BYTES)
        self._data = bytearray(LARGEST_WRITE_BYTES + _PAGE_BYTES)

    def receive(self) -> Asked | None:
        """Read one request, and keep what it writes; None if there is none now."""
        try:
            os.readv(self.descriptor, [self._head, self._data])
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.ENODEV:
                raise Gone from None
            if error.errno == errno.ENOENT:  # it was interrupted before we read it
                return None
            raise
        _, opcode, unique, *_ = _IN_HEADER.unpack_from(self._head)
        if opcode not in {READ, WRITE}:
            return Asked(unique, opcode, None)
        _, offset, size, _ = _TRANSFER.unpack_from(self._head, _IN_HEADER.size)
        if opcode == WRITE:
            self._memory[offset : offset + size] = memoryview(self._data)[:size]
        return Asked(unique, opcode, Request(unique, opcode == WRITE, offset, size))

    def answer(self, request: Request) -> None:
        """Complete a read or a write."""
        if request.is_write:
            self._send(request.unique, struct.pack("<II", request.size_bytes, 0))
        else:
            end = request.offset + request.size_bytes
            self._send(request.unique, self._memory[request.offset : end])

    def answer_other(self, asked: Asked) -> None:
        """Answer whatever is no read and no write."""
        if asked.opcode in _UNANSWERED:
            return
        if asked.opcode == INIT:
            self._send(asked.unique, self._welcome())
        elif asked.opcode in {GETATTR, SETATTR}:
            self._send(asked.unique, struct.pack("<QII", 3600, 0, 0) + self._attributes())
        elif asked.opcode == OPEN:
            flags = _FOPEN_DIRECT_IO | _FOPEN_PARALLEL_DIRECT_WRITES
            self._send(asked.unique, struct.pack("<QII", 0, flags, 0))
        else:
            error = 0 if asked.opcode in _PLAIN else errno.ENOSYS
            self._send(asked.unique, b"", error)

    def _welcome(self) -> bytes:
        return struct.pack(
            "<IIIIHHIIHHI28x",
            *(7, 38, _PAGE_BYTES, _INIT_FLAGS),
            *(_MOST_IN_BACKGROUND, _MOST_IN_BACKGROUND, LARGEST_WRITE_BYTES, 1),
            *(LARGEST_WRITE_BYTES // _PAGE_BYTES, 0, 0),
        )

    def _attributes(self) -> bytes:
        blocks = self._size_bytes // 512
        mode = stat.S_IFREG | 0o600
        times = (0,) * 6
        return struct.pack(
            "<QQQQQQIIIIIIIIII",
            *(1, self._size_bytes, blocks, *times, mode, 1, 0, 0, 0, _PAGE_BYTES, 0),
        )

    def _send(self, unique: int, payload: bytes | memoryview, error: int = 0) -> None:
        header = _OUT_HEADER.pack(_OUT_HEADER.size + len(payload), -error, unique)
        os.writev(self.descriptor, [header, payload])
