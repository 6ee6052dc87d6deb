"""Seconds by verdict, and what throttling cost, over the life of one disk under our eyes."""

import msgspec

from disksla.histogram import Histogram
from disksla.limits import Charge
from disksla.pipeline.latency import LatencyMeter
from disksla.pipeline.peaks import Peak, with_peak
from disksla.procfs import HostWait
from disksla.verdict import LIMIT_KINDS, VERDICTS, Interval, WindowVerdict, load_of

_IDLE = VERDICTS.index("idle")


class VerdictTotals(msgspec.Struct, frozen=True, gc=False):
    """Sums of verdicts."""

    seconds: tuple[float, ...] = (0.0,) * len(VERDICTS)
    """In the order of VERDICTS; together, all the time that was judged."""
    throttled_s: tuple[float, ...] = (0.0,) * len(LIMIT_KINDS)
    """In the order of LIMIT_KINDS."""
    wait_s: float = 0.0
    """I/O-seconds that throttling added."""
    host: HostWait = HostWait(0.0, 0.0, 0.0)
    """The part of what the host waited that fell into throttled windows."""

    def plus(self, window_verdict: WindowVerdict, seconds: float) -> "VerdictTotals":
        """Add one window."""
        index = VERDICTS.index(window_verdict.verdict)
        by_verdict = _with(self.seconds, index, seconds)
        throttled_s = self.throttled_s
        if window_verdict.throttle is not None:
            limit = LIMIT_KINDS.index(window_verdict.throttle.limit)
            throttled_s = _with(throttled_s, limit, seconds)
        return VerdictTotals(
            by_verdict, throttled_s, self.wait_s + window_verdict.wait_s, self.host
        )

    def plus_idle(self, seconds: float) -> "VerdictTotals":
        """Add time in which the disk slept."""
        return msgspec.structs.replace(self, seconds=_with(self.seconds, _IDLE, seconds))

    def plus_host(self, part: HostWait) -> "VerdictTotals":
        """Add the disk's part of what the host waited in a throttled window."""
        return msgspec.structs.replace(self, host=self.host.plus(part))


def _with(amounts: tuple[float, ...], index: int, more: float) -> tuple[float, ...]:
    return (*amounts[:index], amounts[index] + more, *amounts[index + 1 :])


LOAD_BOUNDS_RATIO = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.05, 1.25, 2.0, 4.0)

RECENT_WINDOWS = 10
"""How far back the present reaches."""


class AssessedTime(msgspec.Struct, frozen=True, gc=False):
    """How much time was judged so far, by one count for all disks."""

    windows: int = 0
    seconds: float = 0.0

    def plus(self, seconds: float) -> "AssessedTime":
        """Add one window."""
        return AssessedTime(self.windows + 1, self.seconds + seconds)


class DiskTotals(msgspec.Struct, frozen=True, gc=False):
    """Sums over the life of one disk under our eyes."""

    read_latency: LatencyMeter = LatencyMeter()
    write_latency: LatencyMeter = LatencyMeter()
    load: Histogram = Histogram.empty(LOAD_BOUNDS_RATIO)
    peaks: tuple[Peak, ...] = ()
    recent: tuple[Interval, ...] = ()
    """The last windows in which the disk was awake."""
    verdict_totals: VerdictTotals = VerdictTotals()
    settled_at: AssessedTime = AssessedTime()
    """Up to where this tally is complete."""

    def settled(self, assessed: AssessedTime, now_s: float) -> "DiskTotals":
        """Add the windows that were judged since, in all of which the disk was idle."""
        idle_windows = assessed.windows - self.settled_at.windows
        idle_s = assessed.seconds - self.settled_at.seconds
        return msgspec.structs.replace(
            self,
            load=self.load.observe(0.0, idle_windows) if idle_windows else self.load,
            read_latency=self.read_latency.settled(now_s),
            write_latency=self.write_latency.settled(now_s),
            verdict_totals=self.verdict_totals.plus_idle(idle_s)
            if idle_windows
            else self.verdict_totals,
            settled_at=assessed,
        )

    def plus(
        self,
        interval: Interval,
        promise: tuple[Charge, ...],
        window_verdict: WindowVerdict | None,
        assessed: AssessedTime,
    ) -> "DiskTotals":
        """Add what the disk did up to `assessed`.

        Nothing is lost to a gap, but requests that cannot be laid to a window have no rate, and
        there is no judgement on them.
        """
        read_latency = self.read_latency.add(interval.reads, interval.read_ms, interval.end_s)
        write_latency = self.write_latency.add(interval.writes, interval.write_ms, interval.end_s)
        if window_verdict is None:
            return msgspec.structs.replace(
                self,
                read_latency=read_latency,
                write_latency=write_latency,
                settled_at=assessed,
            )
        load = load_of(interval, promise)
        return DiskTotals(
            read_latency,
            write_latency,
            self.load if load is None else self.load.observe(load),
            with_peak(self.peaks, interval),
            (*self.recent[1 - RECENT_WINDOWS :], interval),
            self.verdict_totals.plus(window_verdict, interval.seconds),
            assessed,
        )


def sum_recent(recent: tuple[Interval, ...], now_s: float, tick_s: float) -> Interval:
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
