"""Messages of NVMe/TCP and commands of NVMe over Fabrics, as bytes.

NVM Express TCP Transport Specification 1.0, section 3.6; Base Specification 2.0. A message (PDU)
has a header of 8 bytes: type, flags, length of the header, offset of the data, length of all.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

HEADER_BYTES = 8
COMMAND_BYTES = 64
MOST_DATA_BYTES = 2**20
"""Largest message of data from the host."""
_HEADER = struct.Struct("<BBBBI")
_START_BYTES = 128
_LAST = 0x04
_COMPLETION = struct.Struct("<QHHHH")
_TRANSFER = struct.Struct("<HHII4x")


class Type(IntEnum):
    """Type of a message."""

    START_REQUEST = 0x00
    START_RESPONSE = 0x01
    COMMAND = 0x04
    COMPLETION = 0x05
    DATA_FROM_HOST = 0x06
    DATA_TO_HOST = 0x07
    READY_FOR_DATA = 0x09


class Header(NamedTuple):
    """Header of a message."""

    kind: int
    flags: int
    header_bytes: int
    data_offset: int
    size_bytes: int


class Status(IntEnum):
    """Status of a command; do not retry, unless it succeeded."""

    SUCCESS = 0
    INVALID_OPCODE = 0x4001
    INVALID_FIELD = 0x4002
    INVALID_LOG_PAGE = 0x4109


class Command(NamedTuple):
    """A command (submission queue entry), with the data that came with it."""

    opcode: int
    identifier: int
    namespace: int
    fabrics_type: int
    data_bytes: int
    words: bytes
    """Command words 10 to 15."""
    data: bytes

    def number(self, offset: int, form: str = "I") -> int:
        """Return a number in the command, by its offset in bytes as in the specification."""
        [value] = struct.unpack_from(f"<{form}", self.words, offset - 40)
        return int(value)


def header_of(data: bytes) -> Header:
    """Return the header of a message; raise ValueError if its lengths are impossible."""
    header = Header(*_HEADER.unpack(data))
    most = _START_BYTES + COMMAND_BYTES + MOST_DATA_BYTES
    if not HEADER_BYTES <= header.header_bytes <= header.size_bytes <= most:
        raise ValueError(f"found {header}; expected a length of at most {most}")
    return header


def command_of(body: bytes) -> Command:
    """Return a command from a message without its header."""
    entry, data = body[:COMMAND_BYTES], body[COMMAND_BYTES:]
    opcode, identifier, namespace = struct.unpack_from("<BxHI", entry)
    [data_bytes] = struct.unpack_from("<I", entry, 32)
    return Command(opcode, identifier, namespace, entry[4], data_bytes, entry[40:], data)


def transfer_of(body: bytes) -> tuple[int, int, bytes]:
    """Return the command, the offset and the data of a message of data from the host."""
    identifier, _, offset, size_bytes = _TRANSFER.unpack_from(body)
    data = body[_TRANSFER.size :]
    if len(data) != size_bytes:
        raise ValueError(f"found {len(data)} bytes of data; expected {size_bytes}")
    return identifier, offset, data


def start_response() -> bytes:
    """Return the answer to the first message: no digests, no alignment."""
    body = struct.pack("<HBBI", 0, 0, 0, MOST_DATA_BYTES)
    header = _HEADER.pack(Type.START_RESPONSE, 0, _START_BYTES, 0, _START_BYTES)
    return (header + body).ljust(_START_BYTES, b"\0")


def completion(identifier: int, status: int = Status.SUCCESS, result: int = 0) -> bytes:
    """Return the completion of a command."""
    size_bytes = HEADER_BYTES + _COMPLETION.size
    header = _HEADER.pack(Type.COMPLETION, 0, size_bytes, 0, size_bytes)
    return header + _COMPLETION.pack(result, 0, 0, identifier, status << 1)


def data_to_host(identifier: int, data: bytes | memoryview) -> bytes:
    """Return all data of a command in one message; a completion must follow."""
    begin = HEADER_BYTES + _TRANSFER.size
    header = _HEADER.pack(Type.DATA_TO_HOST, _LAST, begin, begin, begin + len(data))
    return header + _TRANSFER.pack(identifier, 0, 0, len(data)) + bytes(data)


def ready_for_data(identifier: int, size_bytes: int) -> bytes:
    """Return the request for all data of a command (R2T)."""
    length = HEADER_BYTES + _TRANSFER.size
    header = _HEADER.pack(Type.READY_FOR_DATA, 0, length, 0, length)
    return header + _TRANSFER.pack(identifier, 0, 0, size_bytes)
