"""Several windows of one disk put together, so that one request more or less is little."""

from typing import NamedTuple

from disksla.limits import Charge, load_ratio
from disksla.verdict.interval import Interval

ENOUGH_REQUESTS = 25
"""Of 25 requests, one more or less is 4 %."""
MOST_WINDOWS = 20


class WindowSum(NamedTuple):
    """The last windows of a disk, as one."""

    windows: int
    seconds: float
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int

    @property
    def requests(self) -> int:
        """Give reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Give bytes read and written."""
        return self.read_bytes + self.written_bytes

    def load(self, charges: tuple[Charge, ...]) -> float | None:
        """Give the load of the span; None where there are no limits."""
        return load_ratio(
            charges, self.seconds, self.reads, self.writes, self.read_bytes, self.written_bytes
        )

    def doubt(self, tick_s: float) -> float:
        """Give the share by which a rate over this span may be off.

        One request more or less falls into it, and a limiter that lets requests go in windows of
        its own has let go as many of them as fit, whenever exactly we looked.
        """
        due_s = self.windows * tick_s
        return 1 / max(1, self.requests) + abs(self.seconds - due_s) / due_s


def sum_windows(windows: tuple[Interval, ...]) -> WindowSum:
    """Put windows together."""
    seconds = 0.0
    reads = writes = read_bytes = written_bytes = 0
    for window in windows:
        seconds += window.seconds
        reads += window.reads
        writes += window.writes
        read_bytes += window.read_bytes
        written_bytes += window.written_bytes
    return WindowSum(len(windows), seconds, reads, writes, read_bytes, written_bytes)


def sum_recent_windows(windows: tuple[Interval, ...]) -> WindowSum:
    """Put together as many of the last windows as have enough requests, or all of them."""
    requests = 0
    for number in range(1, len(windows) + 1):
        window = windows[-number]
        requests += window.reads + window.writes
        if requests >= ENOUGH_REQUESTS:
            return sum_windows(windows[-number:])
    return sum_windows(windows)
