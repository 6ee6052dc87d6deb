"""Sums of several windows of a disk, in which one request more or less makes little difference."""

from typing import NamedTuple

from disksla.limits import Charge, load_ratio
from disksla.verdict.interval import Interval

ENOUGH_REQUESTS = 25
"""Requests in a sum from which a rate is computed: one more or less is 4 %."""
MAX_WINDOWS = 20
"""Windows that are kept of each disk."""


class WindowSum(NamedTuple):
    """Sum of consecutive windows of a disk."""

    windows: int
    seconds: float
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    def load(self, charges: tuple[Charge, ...]) -> float | None:
        """Return the load of the sum, as a ratio of the limits; None without limits."""
        return load_ratio(
            charges, self.seconds, self.reads, self.writes, self.read_bytes, self.written_bytes
        )

    def uncertainty(self, tick_s: float) -> float:
        """Return the share by which a rate over this sum may be wrong.

        One request more or less may fall into it. And a limiter with windows has admitted a whole
        number of windows, so a late or early sample changes the duration but not the requests.
        """
        due_s = self.windows * tick_s
        return 1 / max(1, self.requests) + abs(self.seconds - due_s) / due_s


def sum_windows(windows: tuple[Interval, ...]) -> WindowSum:
    """Return the sum of all windows."""
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
    """Return the sum of as many of the last windows as have enough requests, or of all windows."""
    requests = 0
    for number in range(1, len(windows) + 1):
        window = windows[-number]
        requests += window.reads + window.writes
        if requests >= ENOUGH_REQUESTS:
            return sum_windows(windows[-number:])
    return sum_windows(windows)
