"""Performance events of the kernel, without samples and with them (perf_event_open(2)).

Events of one CPU that count form a group, which one system call reads: each read of an event of
another CPU interrupts that CPU.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from disksla.base.errors import DiskslaError

_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
"""Number of perf_event_open, for which libc has no function, by machine (uname(2))."""
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQQ")
"""`struct perf_event_attr` in its second version: type, size, config, sample_period, sample_type,
read_format, flags, ..."""
_TRACEPOINT = 2  # linux/perf_event.h
_FORMAT_GROUP, _FORMAT_TIME_RUNNING = 8, 2
_TASK, _RAW, _CGROUP = 1 << 1, 1 << 10, 1 << 21
"""What is sampled. Not the period: with it, the kernel samples each event, whatever the period."""
_DISABLED = 1
_ALL_PROCESSES, _NO_LEADER = -1, -1
_CLOSE_ON_EXEC = 8
_SET_FILTER = 0x40082406
_HEAD = struct.Struct("=QQ")
"""Start of what a group reads as: number of its events, and nanoseconds in which they counted."""


def open_counters(cpu: int, tracepoint: int, filters: Iterable[str]) -> list[int]:
    """Return descriptors of events of one CPU that count a tracepoint, once with each filter.

    The first event leads the group. A leader of another kind, such as one that never occurs, would
    leave the others stopped (measured on Linux 6.18). Raise OSError, which is a PermissionError
    for the reason of `describe_refusal` (kernel/performance_events/opening.py).
    """
    opened: list[int] = []
    try:
        for text in filters:
            leader = opened[0] if opened else _NO_LEADER
            read_format = _FORMAT_GROUP | _FORMAT_TIME_RUNNING
            fields = (tracepoint, 0, 0, read_format, 0)
            opened.append(_open_with_filter(fields, cpu, leader, text))
    except OSError:
        close_all(opened)
        raise
    return opened


def open_sampler(cpu: int, tracepoint: int, text: str) -> int:
    """Return the descriptor of a disabled event of one CPU that samples a tracepoint.

    A sample has the record of the tracepoint, the thread and the id of its cgroup (Linux 5.7).
    Each occurrence is sampled until another period is set. Raise OSError.
    """
    fields = (tracepoint, 1, _TASK | _RAW | _CGROUP, 0, _DISABLED)
    return _open_with_filter(fields, cpu, _NO_LEADER, text)


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors; the last of an event that samples takes 20 ms."""
    for descriptor in descriptors:
        os.close(descriptor)


class EventGroup:
    """Events of one CPU, counting since they were opened (`open_counters`)."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        """Read a group by its descriptors, of which the first leads it."""
        self._leader = descriptors[0]
        self._running_ns = -1
        self._size = _HEAD.size + 8 * len(descriptors)
        self._counts = struct.Struct(f"={len(descriptors)}Q")

    def read(self) -> tuple[int, ...] | None:
        """Return the counts, in the order of the filters.

        None if the events stopped counting, because the CPU was taken offline. Raise OSError.
        """
        content = os.read(self._leader, self._size + 1)
        if len(content) != self._size:
            return None
        _, running_ns = _HEAD.unpack_from(content)
        if running_ns <= self._running_ns:
            return None
        self._running_ns = running_ns
        return self._counts.unpack_from(content, _HEAD.size)


def read_paranoia(procfs: Path) -> int | None:
    """Return kernel.perf_event_paranoid; None if it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        return int((procfs / "sys" / "kernel" / "perf_event_paranoid").read_text("ascii"))
    return None


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the CPUs of a list such as '0-3,6'. Raise DiskslaError for anything else."""
    cpus: list[int] = []
    with contextlib.suppress(ValueError):
        for part in text.strip().split(","):
            first, dash, last = part.partition("-")
            cpus += range(int(first), int(last if dash else first) + 1)
        return tuple(cpus)
    raise DiskslaError(f"found {text[:40]!r}; expected a list of CPUs such as 0-3,6")


def _open_with_filter(
    fields: tuple[int, int, int, int, int], cpu: int, leader: int, text: str
) -> int:
    event = _perf_event_open(fields, cpu, leader)
    try:
        fcntl.ioctl(event, _SET_FILTER, bytearray(text.encode() + b"\0"))  # bytes: 1024 at most
    except OSError:
        os.close(event)
        raise
    return event


def _perf_event_open(fields: tuple[int, int, int, int, int], cpu: int, leader: int) -> int:
    """Return the descriptor of an event of one CPU. Raise OSError."""
    number = _SYSTEM_CALL.get(platform.machine())
    if number is None or struct.calcsize("P") != 8:  # noqa: PLR2004 -- bytes of a pointer
        raise OSError(errno.ENOSYS, f"perf_event_open is not known on {platform.machine()}")
    numbers = (_TRACEPOINT, _ATTRIBUTES.size, *fields, 0, 0, 0, 0)
    attributes = _ATTRIBUTES.pack(*numbers)
    arguments = map(ctypes.c_long, (_ALL_PROCESSES, cpu, leader, _CLOSE_ON_EXEC))
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(number, attributes, *arguments)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor
