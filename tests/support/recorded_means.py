"""Intervals of a disk as an agent records them, for tests."""

from disksla.measure.means.mean import Mean
from disksla.verdict.interval.interval import Interval

KIB4 = 4096


def mean(
    end_s: float,
    iops: float,
    *,
    inflight: float = 8.0,
    seconds: float = 15.0,
    write_share: float = 0.0,
    request_bytes: int = KIB4,
    flushes: int = 0,
    is_told_apart: bool = True,
) -> Mean:
    """Return an interval with so many requests a second."""
    requests = round(iops * seconds)
    writes = round(requests * write_share)
    reads = requests - writes
    interval = Interval(
        reads=reads if is_told_apart else requests,
        writes=writes if is_told_apart else 0,
        read_bytes=reads * request_bytes,
        written_bytes=(writes - flushes) * request_bytes,
        end_s=end_s,
        seconds=seconds,
        read_ms=None,
        write_ms=None,
        inflight=0,
        flushes=flushes,
    )
    return Mean(interval, inflight, is_told_apart)


def means(*iops: float, seconds: float = 15.0, inflight: float = 8.0) -> list[Mean]:
    """Return intervals that follow each other."""
    return [
        mean(number * seconds, each, seconds=seconds, inflight=inflight)
        for number, each in enumerate(iops, 1)
    ]
