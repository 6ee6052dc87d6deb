"""Performance events of the kernel that count, without samples and buffers (perf_event_open(2)).

Events of one CPU form a group, which one system call reads: each read of an event of another CPU
interrupts that CPU.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

from disksla.errors import DiskslaError

_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
"""Number of perf_event_open, for which libc has no function, by machine (uname(2))."""
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQQ")
"""`struct perf_event_attr` in its second version: type, size, config, ..., read_format, ..."""
_TRACEPOINT = 2  # linux/perf_event.h
_FORMAT_GROUP, _FORMAT_TIME_RUNNING = 8, 2
_ALL_PROCESSES, _NO_LEADER = -1, -1
_CLOSE_ON_EXEC = 8
_SET_FILTER = 0x40082406
_HEAD = struct.Struct("=QQ")
"""Start of what a group reads as: number of its events, and nanoseconds in which they counted."""


class EventGroup:
    """Events of one CPU, counting since they were opened."""

    def __init__(self, cpu: int, tracepoint: int, filters: Iterable[str]) -> None:
        """Count one tracepoint once with each filter (Documentation/trace/events.rst).

        The first event leads the group. A leader of another kind, such as one that never occurs,
        would leave the others stopped (measured on Linux 6.18).

        Raise OSError, which is a PermissionError for the reason of `describe_refusal`.
        """
        self._running_ns = -1
        self._descriptors: list[int] = []
        try:
            for text in filters:
                leader = self._descriptors[0] if self._descriptors else _NO_LEADER
                event = _perf_event_open(tracepoint, cpu, leader)
                self._descriptors.append(event)
                fcntl.ioctl(event, _SET_FILTER, text.encode() + b"\0")
        except OSError:
            self.close()
            raise
        counts = len(self._descriptors)
        self._size = _HEAD.size + 8 * counts
        self._counts = struct.Struct(f"={counts}Q")

    def read(self) -> tuple[int, ...] | None:
        """Return the counts, in the order of the filters.

        None if the events stopped counting, because the CPU was taken offline. Raise OSError.
        """
        content = os.read(self._descriptors[0], self._size + 1)
        if len(content) != self._size:
            return None
        _, running_ns = _HEAD.unpack_from(content)
        if running_ns <= self._running_ns:
            return None
        self._running_ns = running_ns
        return self._counts.unpack_from(content, _HEAD.size)

    def close(self) -> None:
        """Stop counting."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []


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


def _perf_event_open(tracepoint: int, cpu: int, leader: int) -> int:
    """Return the descriptor of an event that counts on one CPU. Raise OSError."""
    number = _SYSTEM_CALL.get(platform.machine())
    if number is None or struct.calcsize("P") != 8:  # noqa: PLR2004 -- bytes of a pointer
        raise OSError(errno.ENOSYS, f"perf_event_open is not known on {platform.machine()}")
    read_format = _FORMAT_GROUP | _FORMAT_TIME_RUNNING
    size = _ATTRIBUTES.size
    fields = (_TRACEPOINT, size, tracepoint, 0, 0, read_format, 0, 0, 0, 0, 0)
    attributes = _ATTRIBUTES.pack(*fields)
    numbers = map(ctypes.c_long, (_ALL_PROCESSES, cpu, leader, _CLOSE_ON_EXEC))
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(number, attributes, *numbers)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"perf_event_open: {os.strerror(code)}")
    return descriptor
