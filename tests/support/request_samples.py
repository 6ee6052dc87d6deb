"""Samples of requests, written field by field as perf_event_open(2) describes them."""

import struct

from disksla.kernel.performance_events.samples import RequestSample


def record(sample: RequestSample, comm: int, pid: int = 1) -> bytes:
    """Return a sample, with the name of the program at an offset."""
    raw = struct.pack("=HBBi", sample.tracepoint, 0, 0, pid)
    raw += struct.pack("=I4xQI", sample.device, 0, sample.sectors)
    raw = raw.ljust(comm, b"W") + sample.comm
    raw = raw.ljust(-(-len(raw) // 8) * 8, b"\0")  # of the structure
    raw = raw.ljust(-(-(len(raw) + 4) // 8) * 8 - 4, b"\0")  # with its length
    body = struct.pack("=III", pid, pid, len(raw)) + raw + struct.pack("=Q", sample.cgroup)
    return struct.pack("=IHH", 9, 0, 8 + len(body)) + body


def lost(number: int) -> bytes:
    """Return a record that says how many samples were lost."""
    return struct.pack("=IHHQQ", 2, 0, 24, 7, number)
