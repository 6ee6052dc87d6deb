"""All that is said of one disk, added up so that no scrape misses any of it.

An idle disk costs nothing: its tally is left as it is, and the windows that it slept through
are added when it wakes or when somebody looks (`settled`).
"""

import msgspec

from disksla.core.cost import Charge
from disksla.core.histogram import Histogram
from disksla.core.interval import Interval, load_of
from disksla.core.latency import LatencyMeter
from disksla.core.ledger import Ledger
from disksla.core.peaks import Peak, with_peak
from disksla.core.verdict import Judgement

LOAD_BOUNDS_RATIO = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.05, 1.25, 2.0, 4.0)

RECENT_WINDOWS = 10
"""How far back the present reaches."""


class Assessed(msgspec.Struct, frozen=True, gc=False):
    """How much time was judged so far, by one count for all disks."""

    windows: int = 0
    seconds: float = 0.0

    def plus(self, seconds: float) -> "Assessed":
        """Add one window."""
        return Assessed(self.windows + 1, self.seconds + seconds)


class Tally(msgspec.Struct, frozen=True, gc=False):
    """Sums over the life of one disk under our eyes."""

    read_latency: LatencyMeter = LatencyMeter()
    write_latency: LatencyMeter = LatencyMeter()
    load: Histogram = Histogram.empty(LOAD_BOUNDS_RATIO)
    peaks: tuple[Peak, ...] = ()
    recent: tuple[Interval, ...] = ()
    """The last windows in which the disk was awake."""
    ledger: Ledger = Ledger()
    settled_at: Assessed = Assessed()
    """Up to where this tally is complete."""

    def settled(self, assessed: Assessed, now_s: float) -> "Tally":
        """Add the windows that were judged since, in all of which the disk was idle."""
        idle_windows = assessed.windows - self.settled_at.windows
        idle_s = assessed.seconds - self.settled_at.seconds
        return msgspec.structs.replace(
            self,
            load=self.load.observe(0.0, idle_windows) if idle_windows else self.load,
            read_latency=self.read_latency.settled(now_s),
            write_latency=self.write_latency.settled(now_s),
            ledger=self.ledger.plus_idle(idle_s) if idle_windows else self.ledger,
            settled_at=assessed,
        )

    def plus(
        self,
        interval: Interval,
        promise: tuple[Charge, ...],
        judgement: Judgement | None,
        assessed: Assessed,
    ) -> "Tally":
        """Add what the disk did up to `assessed`.

        Nothing is lost to a gap, but requests that cannot be laid to a window have no rate, and
        there is no judgement on them.
        """
        read_latency = self.read_latency.add(interval.reads, interval.read_ms, interval.end_s)
        write_latency = self.write_latency.add(interval.writes, interval.write_ms, interval.end_s)
        if judgement is None:
            return msgspec.structs.replace(
                self,
                read_latency=read_latency,
                write_latency=write_latency,
                settled_at=assessed,
            )
        load = load_of(interval, promise)
        return Tally(
            read_latency,
            write_latency,
            self.load if load is None else self.load.observe(load),
            with_peak(self.peaks, interval),
            (*self.recent[1 - RECENT_WINDOWS :], interval),
            self.ledger.plus(judgement, interval.seconds),
            assessed,
        )


def recently(recent: tuple[Interval, ...], now_s: float, tick_s: float) -> Interval:
    """Put the last windows together; those in which the disk slept count as idle."""
    horizon_s = RECENT_WINDOWS * tick_s
    windows = [window for window in recent if window.end_s > now_s - horizon_s]
    return Interval(
        now_s,
        max(horizon_s, sum(window.seconds for window in windows)),
        sum(window.reads for window in windows),
        sum(window.writes for window in windows),
        sum(window.read_bytes for window in windows),
        sum(window.written_bytes for window in windows),
        sum(window.read_ms or 0 for window in windows),
        sum(window.write_ms or 0 for window in windows),
        windows[-1].inflight if windows else 0,
    )
