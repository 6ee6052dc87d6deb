"""The target on loopback, by messages as the kernel sends them. Needs no virtual machine.

`make ebs` has the counterpart that matters: the driver of Linux.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from nvme.page import EBS
from nvme.target import STATISTICS, Fault, Served, Target, serving

VOLUME = Served("vol0123456789abcdef0", 2**20)
NO_PAGE = Served("other", 2**20, "Another", None)
SGL_IN_CAPSULE, SGL_TRANSPORT = 0x01, 0x5A


class Answer(NamedTuple):
    status: int
    result: int
    data: bytes


class Host:
    """One queue, as a host has it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._file = self._socket.makefile("rb")
        self.send(0x00, bytes(120), header_bytes=128)
        kind, body = self.receive()
        assert kind == 0x01
        assert len(body) == 120

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def is_closed(self) -> bool:
        """Wait until the target sends or closes; return whether it closed."""
        return self._file.read(1) == b""

    def send(self, kind: int, body: bytes, header_bytes: int) -> None:
        size_bytes = 8 + len(body)
        offset = header_bytes if size_bytes > header_bytes else 0
        self._socket.sendall(
            struct.pack("<BBBBI", kind, 0, header_bytes, offset, size_bytes) + body
        )

    def receive(self) -> tuple[int, bytes]:
        kind, _, _, _, size_bytes = struct.unpack("<BBBBI", self._file.read(8))
        return kind, self._file.read(size_bytes - 8)

    def ask(
        self, opcode: int, words: bytes, data: bytes = b"", *, expected: int = 0, fabrics: int = 0
    ) -> Answer:
        """Send a command; return its completion with the data that came before."""
        entry = struct.pack("<BBHI", opcode, 0x40, 5, fabrics or 1).ljust(32, b"\0")
        entry += struct.pack(
            "<I3xB", expected or len(data), SGL_IN_CAPSULE if data else SGL_TRANSPORT
        )
        self.send(0x04, entry + words.ljust(24, b"\0") + data, header_bytes=72)
        return self.completion()

    def completion(self) -> Answer:
        received = b""
        while True:
            kind, body = self.receive()
            if kind == 0x05:
                result, identifier, status = struct.unpack("<Q4xHH", body)
                assert identifier == 5
                return Answer(status >> 1, result, received)
            assert kind == 0x07
            received += body[16:]

    def connect(self, queue: int, name: str) -> Answer:
        data = bytes(256) + name.encode().ljust(768, b"\0")
        return self.ask(0x7F, struct.pack("<HHH", 0, queue, 31), data, fabrics=1)

    def log_page(self, kind: int, size_bytes: int) -> Answer:
        words = size_bytes // 4 - 1
        return self.ask(0x02, struct.pack("<I", kind | words << 16), expected=size_bytes)


@contextmanager
def connected(target: Target, queue: int, served: Served = VOLUME) -> Iterator[Host]:
    host = Host(target.port)
    try:
        assert host.connect(queue, served.name).status == 0
        yield host
    finally:
        host.close()


@pytest.fixture
def target() -> Iterator[Target]:
    with serving([VOLUME, NO_PAGE]) as running:
        yield running


def test_volume_is_identified_as_one_of_ebs(target: Target) -> None:
    with connected(target, 0) as host:
        answer = host.ask(0x06, struct.pack("<I", 1), expected=4096)
        assert answer.data[4:24] == b"vol0123456789abcdef0"
        assert answer.data[24:64].rstrip() == b"Amazon Elastic Block Store"
        answer = host.ask(0x06, struct.pack("<I", 0), expected=4096)
        assert struct.unpack_from("<Q", answer.data) == (2048,)


def test_unknown_volume_is_refused(target: Target) -> None:
    host = Host(target.port)
    assert host.connect(0, "nqn.2026-11.test:another").status != 0
    host.close()


def test_data_are_read_as_they_were_written(target: Target) -> None:
    small, large = bytes(range(256)) * 16, b"ab" * 8192
    with connected(target, 1) as host:
        assert host.ask(0x01, struct.pack("<QI", 8, 7), small).status == 0
        # Without data: the target asks for them, and they come in two messages.
        entry = struct.pack("<BBHI", 0x01, 0x40, 5, 1).ljust(32, b"\0")
        entry += struct.pack("<I3xB", len(large), SGL_TRANSPORT) + struct.pack("<QI12x", 16, 31)
        host.send(0x04, entry, header_bytes=72)
        kind, body = host.receive()
        assert (kind, struct.unpack("<HHII4x", body)) == (0x09, (5, 0, 0, len(large)))
        for offset in (0, 8192):
            part = large[offset : offset + 8192]
            transfer = struct.pack("<HHII4x", 5, 0, offset, len(part))
            host.send(0x06, transfer + part, header_bytes=24)
        assert host.completion().status == 0
        answer = host.ask(0x02, struct.pack("<QI", 8, 39), expected=20480)
        assert answer.data == small + large
        beyond = host.ask(0x02, struct.pack("<QI", 2048, 0), expected=512)
        assert beyond.status == 0x4002
    assert target.operations(VOLUME.serial) == 3


@pytest.mark.parametrize("size_bytes", [4096, 8192])
def test_page_of_statistics_is_served(target: Target, size_bytes: int) -> None:
    with connected(target, 0) as host:
        answer = host.log_page(STATISTICS, size_bytes)
        assert answer.status == 0
        assert len(answer.data) == size_bytes
        assert struct.unpack_from("<II", answer.data) == (EBS, 1)
    assert target.asked(VOLUME.serial) == 1


def test_volume_without_a_page_refuses(target: Target) -> None:
    with connected(target, 0, NO_PAGE) as host:
        assert host.log_page(STATISTICS, 4096) == Answer(0x4109, 0, b"")


@pytest.mark.parametrize("fault", ["magic", "version", "bins", "short", "status"])
def test_page_is_wrong_on_demand(target: Target, fault: Fault) -> None:
    with connected(target, 0) as host:
        good = host.log_page(STATISTICS, 4096)
        target.spoil(VOLUME.serial, fault)
        assert host.log_page(STATISTICS, 4096) != good
        target.spoil(VOLUME.serial, None)
        assert host.log_page(STATISTICS, 4096) == good


def test_connections_are_closed_on_demand(target: Target) -> None:
    with connected(target, 0) as host:
        target.drop(VOLUME.serial)
        assert host.is_closed()
