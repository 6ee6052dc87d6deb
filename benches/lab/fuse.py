"""The part of the FUSE protocol that a mount of one regular file needs.

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
_WITHOUT_REPLY = {FORGET, INTERRUPT, BATCH_FORGET}
_EMPTY_REPLY = {RELEASE, FSYNC, FLUSH}

_IN_HEADER = struct.Struct("<IIQQIIIHH")
_OUT_HEADER = struct.Struct("<IiQ")
_TRANSFER = struct.Struct("<QQII")
"""File handle, offset, size, flags: the first fields of READ and WRITE."""
_HEAD_BYTES = 80
"""Size of header and arguments of READ and WRITE; the data of a WRITE follow."""
_FOPEN_DIRECT_IO = 1 << 0
_FOPEN_PARALLEL_DIRECT_WRITES = 1 << 6
_INIT_FLAGS = 1 << 0 | 1 << 5 | 1 << 15 | 1 << 22
"""ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES: without them the kernel splits and queues
requests."""
_MAX_BACKGROUND = 4096


def mount(mount_point: Path, kind: str = "disksla-lab") -> int:
    """Mount a file on a file; return the descriptor from which its requests are read."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0"
    source, target, fs_type = kind.encode(), bytes(mount_point), f"fuse.{kind}".encode()
    if libc.mount(source, target, fs_type, 0, options.encode()):
        number = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(number, os.strerror(number), str(mount_point))
    return descriptor


class Gone(Exception):  # noqa: N818 -- not an error: every mount ends so
    """The file system was unmounted."""


class FuseRequest(NamedTuple):
    """A request of the kernel."""

    unique: int
    opcode: int
    request: Request | None
    """Present for reads and writes."""


class Channel:
    """The requests of the kernel for one file, whose content is `memory`."""

    def __init__(self, descriptor: int, memory: mmap) -> None:
        self.descriptor = descriptor
        self._size_bytes = len(memory)
        self._memory = memoryview(memory)
        self._head = bytearray(_HEAD_BYTES)
        self._data = bytearray(LARGEST_WRITE_BYTES + _PAGE_BYTES)

    def receive(self) -> FuseRequest | None:
        """Read one request, and store the data of a write; None if there is none now."""
        try:
            os.readv(self.descriptor, [self._head, self._data])
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.ENODEV:
                raise Gone from None
            if error.errno == errno.ENOENT:  # the request was interrupted before it was read
                return None
            raise
        _, opcode, unique, *_ = _IN_HEADER.unpack_from(self._head)
        if opcode not in {READ, WRITE}:
            return FuseRequest(unique, opcode, None)
        _, offset, size, _ = _TRANSFER.unpack_from(self._head, _IN_HEADER.size)
        if opcode == WRITE:
            self._memory[offset : offset + size] = memoryview(self._data)[:size]
        return FuseRequest(unique, opcode, Request(unique, opcode == WRITE, offset, size))

    def answer(self, request: Request) -> None:
        """Complete a read or a write."""
        if request.is_write:
            self._send(request.unique, struct.pack("<II", request.size_bytes, 0))
        else:
            end = request.offset + request.size_bytes
            self._send(request.unique, self._memory[request.offset : end])

    def answer_other(self, message: FuseRequest) -> None:
        """Answer a request that is neither a read nor a write."""
        if message.opcode in _WITHOUT_REPLY:
            return
        if message.opcode == INIT:
            self._send(message.unique, self._init_reply())
        elif message.opcode in {GETATTR, SETATTR}:
            self._send(message.unique, struct.pack("<QII", 3600, 0, 0) + self._attributes())
        elif message.opcode == OPEN:
            flags = _FOPEN_DIRECT_IO | _FOPEN_PARALLEL_DIRECT_WRITES
            self._send(message.unique, struct.pack("<QII", 0, flags, 0))
        else:
            error = 0 if message.opcode in _EMPTY_REPLY else errno.ENOSYS
            self._send(message.unique, b"", error)

    def _init_reply(self) -> bytes:
        return struct.pack(
            "<IIIIHHIIHHI28x",
            *(7, 38, _PAGE_BYTES, _INIT_FLAGS),
            *(_MAX_BACKGROUND, _MAX_BACKGROUND, LARGEST_WRITE_BYTES, 1),
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
