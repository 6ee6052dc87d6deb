"""Events that are open in this process, from the helper or opened here."""

import resource
import socket
import time
from array import array
from pathlib import Path
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.packets import LONGEST_BYTES, connect, decode_packet, encode
from disksla.base.operating_system.perf_events import close_all, parse_cpus
from disksla.kernel.performance_events import protocol
from disksla.kernel.performance_events.opening import EventFiles, plan, record_of

ANSWER_S = 30.0
"""How long the helper may take: the start of Python takes 0.4 s of a CPU, which a machine without
credits of its CPU has in ten seconds."""
_SHARE = 0.5
"""Largest share of the descriptors of this process that the events of a request may use."""


class NoHelperError(DiskslaError):
    """No helper listens, and this process may not open events itself."""


class OpenedEvents(NamedTuple):
    """Events of a request on all CPUs."""

    by_cpu: dict[int, tuple[int, ...]]  # descriptors of each CPU, in the order of the events
    record: protocol.Tracepoint | None  # form of their samples; None for events that count

    def close(self) -> None:
        """Close all."""
        for descriptors in self.by_cpu.values():
            close_all(descriptors)


def open_events(
    request: protocol.EventsRequest, online: str, helper: Path, files: EventFiles
) -> OpenedEvents:
    """Return events that the helper opened, if its socket exists, or this process.

    `online` is the list of the CPUs that is known here. Raise OSError, DiskslaError.
    """
    if helper.exists():
        _check_descriptors(request, online)
        return ask(helper, request)
    try:
        _check_descriptors(request, online)
        return _open_here(request, files)
    except DiskslaError as error:
        raise NoHelperError(
            f"no helper listens on {helper}, and this process may not: {error}"
        ) from None


def ask(helper: Path, request: protocol.EventsRequest) -> OpenedEvents:
    """Return the events that the helper opens. Raise OSError, DiskslaError."""
    received: list[int] = []
    try:
        with connect(helper, ANSWER_S) as connection:
            connection.send(encode(request))
            return _receive(connection, request, received)
    except TimeoutError:
        close_all(received)
        raise DiskslaError(f"the helper did not answer within {ANSWER_S:.0f} s") from None
    except BaseException:
        close_all(received)
        raise


def _receive(
    connection: socket.socket, request: protocol.EventsRequest, received: list[int]
) -> OpenedEvents:
    """Return events, whose descriptors are added to `received`. Raise OSError, DiskslaError."""
    by_cpu: dict[int, tuple[int, ...]] = {}
    until_s = time.monotonic() + ANSWER_S
    while time.monotonic() < until_s:
        packet, descriptors, flags = _receive_packet(connection)
        received += descriptors
        message = _message(packet, len(descriptors), flags)
        if isinstance(message, protocol.End):
            _check_complete(message, request, by_cpu)
            return OpenedEvents(by_cpu, message.record)
        by_cpu[message.cpu] = (*by_cpu.get(message.cpu, ()), *descriptors)
    raise TimeoutError


def _receive_packet(connection: socket.socket) -> tuple[bytes, list[int], int]:
    """Return a packet, its descriptors and flags. Raise OSError.

    No child process inherits the descriptors; socket.recv_fds ignores the flag for that.
    """
    space = socket.CMSG_LEN(protocol.MOST_DESCRIPTORS * array("i").itemsize)
    packet, ancillary, flags, _ = connection.recvmsg(LONGEST_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    descriptors = array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return packet, list(descriptors), flags


def _message(packet: bytes, descriptors: int, flags: int) -> protocol.Batch | protocol.End:
    """Return a message that came with some descriptors. Raise DiskslaError."""
    if flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        raise DiskslaError("descriptors of the helper were lost; raise LimitNOFILE")
    message = decode_packet(protocol.ANSWERS, packet)
    if isinstance(message, protocol.Refusal):
        raise DiskslaError(message.message)
    expected = message.descriptors if isinstance(message, protocol.Batch) else 0
    if descriptors != expected:
        raise DiskslaError(f"found {descriptors} descriptors; expected {expected}")
    return message


def _check_complete(
    end: protocol.End, request: protocol.EventsRequest, by_cpu: dict[int, tuple[int, ...]]
) -> None:
    expected = dict.fromkeys(parse_cpus(end.online), request.events_of_cpu)
    if {cpu: len(descriptors) for cpu, descriptors in by_cpu.items()} != expected:
        raise DiskslaError(
            f"found events of {len(by_cpu)} CPUs; expected {request.events_of_cpu} for each of"
            f" {end.online[:40]!r}"
        )


def _open_here(request: protocol.EventsRequest, files: EventFiles) -> OpenedEvents:
    prepared = plan(request, files)
    by_cpu: dict[int, tuple[int, ...]] = {}
    opened = OpenedEvents(by_cpu, record_of(prepared.tracepoints))
    try:
        for cpu, descriptors in prepared.open():
            by_cpu[cpu] = tuple(descriptors)
    except BaseException:
        opened.close()
        raise
    return opened


def _check_descriptors(request: protocol.EventsRequest, online: str) -> None:
    needed = len(parse_cpus(online)) * request.events_of_cpu
    most = _SHARE * resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if needed > most:
        raise DiskslaError(
            f"found {most:.0f} descriptors for events; expected {needed}, one for each CPU"
            " and disk; raise LimitNOFILE"
        )
