"""Totals of one disk: latency, load, peaks, and seconds by verdict, summed over its windows.

Totals of a disk that is idle are not updated at every tick: `DiskTotals.complete_to` says how much
assessed time they include, and `DiskTotals.with_idle_until` adds the rest as idle.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import gt

import msgspec

from disksla.base.counts import total
from disksla.base.histogram import Histogram
from disksla.kernel.procfs import HostWait
from disksla.promise.catalogue import Limits
from disksla.state.pipeline.slow import SlowTotals
from disksla.state.provider_count import NONE_WAITING, WaitingVerdicts
from disksla.verdict.interval import Interval, idle, load_of
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS, WindowVerdict

KEPT_S = 60  # for so long, the highest rates of any window are kept: they show microbursts


class Traffic(msgspec.Struct, frozen=True):
    """Rates of one disk."""

    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


class Peak(msgspec.Struct, frozen=True, gc=False):
    """The highest rates of all windows that ended within one second."""

    second: int  # monotonic time, truncated to whole seconds
    rates_per_second: tuple[float, ...]  # in the order of `Traffic`


def traffic_of(interval: Interval) -> Traffic:
    """Return the mean rates of an interval."""
    return Traffic(*_rates(interval))


def with_peaks(peaks: tuple[Peak, ...], windows: Iterable[Interval]) -> tuple[Peak, ...]:
    """Add the rates of windows that follow each other to the peaks of their seconds.

    Peaks older than a minute are dropped, and those that the last second exceeds in all rates.
    """
    for second, of_second in groupby(windows, lambda window: int(window.end_s)):
        rates = [_rates(window) for window in of_second]
        if peaks and peaks[-1].second == second:
            rates.append(peaks[-1].rates_per_second)
            peaks = peaks[:-1]
        else:
            peaks = _needed(peaks, second - KEPT_S)
        peaks = (*peaks, Peak(second, tuple(map(max, zip(*rates, strict=True)))))
    return peaks


def _needed(peaks: tuple[Peak, ...], oldest: int) -> tuple[Peak, ...]:
    """Return the peaks from a second on that the last one does not exceed in all rates."""
    last = peaks[-1].rates_per_second if peaks else ()
    kept = (
        peak
        for peak in peaks[:-1]
        if peak.second >= oldest and any(map(gt, peak.rates_per_second, last))
    )
    return (*kept, *peaks[-1:])


def highest(peaks: tuple[Peak, ...], now_s: float) -> Traffic:
    """Return the highest rates in the minute before `now_s`; zeros if there was no I/O."""
    kept = [peak.rates_per_second for peak in peaks if peak.second >= int(now_s) - KEPT_S]
    return Traffic(*map(max, zip(*kept, strict=True)))


def _rates(interval: Interval) -> tuple[float, ...]:
    seconds = interval.seconds
    return (
        interval.reads / seconds,
        interval.writes / seconds,
        interval.read_bytes / seconds,
        interval.written_bytes / seconds,
    )


LATENCY_BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
)  # fmt: skip
"""Bounds that include the latencies that providers promise: 0.5 ms, 1 ms, 3 ms and 20 ms."""

ENOUGH_MS = 20  # one millisecond is 5 % of this
LONGEST_WAIT_S = 1.0


class LatencyMeter(msgspec.Struct, frozen=True, gc=False):
    """Latency histogram of one direction from the mean latency of windows, and what is pending.

    The kernel sums the time of completed requests and prints whole milliseconds, so the difference
    of two samples is off by up to one millisecond: negligible for a hundred slow requests, half of
    the value for ten fast ones (Documentation/admin-guide/iostats.rst). Windows are therefore
    added until that error is small, or until a second has passed.
    """

    histogram: Histogram = Histogram.empty(LATENCY_BOUNDS_S)
    """Seconds per request: the mean of each group of windows, counted once per request."""
    pending_requests: int = 0
    pending_ms: int = 0
    pending_since_s: float = 0.0  # monotonic time at which the first pending request was added

    def plus(self, completed: Iterable[tuple[int, int | None, float]]) -> "LatencyMeter":
        """Add completed requests: their number, the sum of their time in ms, and when.

        Those whose time is not known are left out. Requests stay pending until their time is
        enough, or old enough.
        """
        requests, milliseconds = self.pending_requests, self.pending_ms
        since_s, observed = self.pending_since_s, []
        for number, took_ms, now_s in completed:
            if took_ms is None or not (number or requests):
                continue
            since_s = since_s if requests else now_s
            requests += number
            milliseconds += took_ms if number else 0
            if milliseconds >= ENOUGH_MS or now_s - since_s >= LONGEST_WAIT_S:
                observed.append((milliseconds / 1000 / requests, requests))
                requests = milliseconds = 0
        histogram = self.histogram.observe_all(observed) if observed else self.histogram
        return LatencyMeter(histogram, requests, milliseconds, since_s if requests else 0.0)

    def with_overdue(self, now_s: float) -> "LatencyMeter":
        """Move pending requests into the histogram if LONGEST_WAIT_S has passed."""
        return self.plus([(0, 0, now_s)]) if self.pending_requests else self


_IDLE = VERDICTS.index("idle")
_UNPROVEN = WindowVerdict("unproven")
NO_HOST_WAIT = HostWait(0.0, 0.0, 0.0)


class Undecided(msgspec.Struct, frozen=True, gc=False):
    """The last windows of a disk, whose verdicts wait for the end of their second.

    While nothing completes they wait longer, for `longest_silence_s` at most, and where the
    provider counts, for its next reading.
    """

    windows: tuple[Interval, ...] = ()
    host: HostWait = NO_HOST_WAIT  # the disk's share of their iowait and PSI
    waiting: WaitingVerdicts = NONE_WAITING  # what waits for the count of the provider

    def at_gap(self) -> tuple[WindowVerdict, ...]:
        """Return the verdicts where nothing more will be known: by the signs, or unproven."""
        known = self.waiting.verdicts
        return (*known, *[_UNPROVEN] * (len(self.windows) - len(known)))


NONE_UNDECIDED = Undecided()


class VerdictTotals(msgspec.Struct, frozen=True, gc=False):
    """Seconds by verdict and by limit, and what throttling cost."""

    seconds: tuple[float, ...] = (0.0,) * len(VERDICTS)
    """In the order of VERDICTS; their sum is the time assessed, without undecided windows."""
    throttled_s: tuple[float, ...] = (0.0,) * len(LIMIT_KINDS)
    """Throttled seconds by limit, in the order of LIMIT_KINDS."""
    burst_s: float = 0.0  # throttled seconds at the burst rate; they are among `throttled_s`
    wait_s: float = 0.0  # I/O-seconds that requests waited because of throttling
    host: HostWait = NO_HOST_WAIT  # the disk's share of iowait and PSI in throttled windows

    def plus(
        self, windows: Iterable[Interval], verdicts: Iterable[WindowVerdict]
    ) -> "VerdictTotals":
        """Add windows."""
        by_verdict, throttled_s = list(self.seconds), list(self.throttled_s)
        burst_s, wait_s = self.burst_s, self.wait_s
        for window, each in zip(windows, verdicts, strict=False):
            seconds = window.seconds
            if each.throttle is not None:
                throttled_here_s = each.throttled_share * seconds
                by_verdict[VERDICTS.index(each.otherwise)] += seconds - throttled_here_s
                throttled_s[LIMIT_KINDS.index(each.throttle.limit)] += throttled_here_s
                if each.throttle.level == "burst":
                    burst_s += throttled_here_s
                seconds = throttled_here_s
            by_verdict[VERDICTS.index(each.verdict)] += seconds
            wait_s += each.wait_s
        return VerdictTotals(tuple(by_verdict), tuple(throttled_s), burst_s, wait_s, self.host)

    def plus_idle(self, seconds: float) -> "VerdictTotals":
        """Add time in which the disk was idle."""
        by_verdict = list(self.seconds)
        by_verdict[_IDLE] += seconds
        return msgspec.structs.replace(self, seconds=tuple(by_verdict))

    def plus_host(self, share: HostWait) -> "VerdictTotals":
        """Add the disk's share of the iowait and PSI of a throttled window."""
        return msgspec.structs.replace(self, host=self.host + share)


LOAD_BOUNDS_RATIO = (0.01, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 1.0, 1.05, 1.25, 2.0, 4.0)

RECENT_WINDOWS = 10  # present rates and loads are means over this many windows


class AssessedTime(msgspec.Struct, frozen=True, gc=False):
    """How much time was assessed; counted once for all disks."""

    windows: int = 0
    seconds: float = 0.0

    def plus(self, seconds: float) -> "AssessedTime":
        """Add one window."""
        return AssessedTime(self.windows + 1, self.seconds + seconds)


class DiskTotals(msgspec.Struct, frozen=True, gc=False):
    """Sums over all windows since disksla first sampled the disk.

    Latency, load and peaks are counted together with the verdicts, when a second is decided: ten
    windows at once take half of the CPU time. `with_undecided` has those of all windows.
    """

    read_latency: LatencyMeter = LatencyMeter()
    write_latency: LatencyMeter = LatencyMeter()
    load: Histogram = Histogram.empty(LOAD_BOUNDS_RATIO)
    peaks: tuple[Peak, ...] = ()
    recent: tuple[Interval, ...] = ()  # the last windows for which the disk was updated
    verdict_totals: VerdictTotals = VerdictTotals()
    complete_to: AssessedTime = AssessedTime()  # assessed time that these totals include
    undecided: Undecided = NONE_UNDECIDED
    """Windows of which only `least_writes`, `most_writes` and `others` are counted."""
    slow: SlowTotals = SlowTotals()
    least_writes: int = 0
    """Data writes at least and at most; the same where they are counted exactly, and without
    flushes. They are at least as many only where no flushes are merged (`Interval`)."""
    most_writes: int = 0
    others: int = 0  # operations of an NFS mount that are neither reads nor writes

    def with_idle_until(self, assessed: AssessedTime, now_s: float) -> "DiskTotals":
        """Add the windows since `complete_to`, in all of which the disk was idle."""
        idle_windows = assessed.windows - self.complete_to.windows
        idle_s = assessed.seconds - self.complete_to.seconds
        return msgspec.structs.replace(
            self,
            load=self.load.observe(0.0, idle_windows) if idle_windows else self.load,
            read_latency=self.read_latency.with_overdue(now_s),
            write_latency=self.write_latency.with_overdue(now_s),
            verdict_totals=self.verdict_totals.plus_idle(idle_s)
            if idle_windows
            else self.verdict_totals,
            complete_to=assessed,
        )

    def plus(
        self,
        interval: Interval,
        limits: Limits,
        verdicts: tuple[WindowVerdict, ...],
        assessed: AssessedTime,
        waiting: WaitingVerdicts = NONE_WAITING,
    ) -> "DiskTotals":
        """Add an interval that ends at `assessed`.

        `verdicts` are those that are decided now: on the undecided windows and on this one, the
        oldest first, and `waiting` is what waits for the count of the provider. Without a duration
        it is a gap, and undecided windows before it stay unproven.
        """
        data = interval.without_flushes()
        least_writes = self.least_writes + data.writes
        most_writes = self.most_writes + interval.writes
        if not interval.seconds:
            # Requests of a gap count in the latency histograms. They have no rate and no load,
            # because the time in which they completed is unknown.
            return msgspec.structs.replace(
                _with_latency(self.with_undecided_unproven(limits), [data]),
                complete_to=assessed,
                least_writes=least_writes,
                most_writes=most_writes,
                others=self.others + interval.others,
            )
        totals, windows, host = self, (*self.undecided.windows, interval), self.undecided.host
        if verdicts:
            decided, windows = windows[: len(verdicts)], windows[len(verdicts) :]
            totals, host = self._with_decided(decided, verdicts, limits), NO_HOST_WAIT
        return msgspec.structs.replace(
            totals,
            recent=(*self.recent[1 - RECENT_WINDOWS :], interval),
            complete_to=assessed,
            undecided=Undecided(windows, host, waiting),
            least_writes=least_writes,
            most_writes=most_writes,
            others=self.others + interval.others,
        )

    def with_undecided(self, limits: Limits) -> "DiskTotals":
        """Return totals with latency, load and peaks of the undecided windows."""
        return self._with_windows(self.undecided.windows, limits)

    def with_undecided_unproven(self, limits: Limits) -> "DiskTotals":
        """Return totals without undecided windows, where nothing more will be known of them."""
        if not self.undecided.windows:
            return self
        return msgspec.structs.replace(
            self.with_undecided(limits),
            verdict_totals=self.verdict_totals.plus(
                self.undecided.windows, self.undecided.at_gap()
            ),
            undecided=NONE_UNDECIDED,
        )

    def _with_decided(
        self, windows: Sequence[Interval], verdicts: Sequence[WindowVerdict], limits: Limits
    ) -> "DiskTotals":
        """Return totals with windows and the verdicts on them."""
        verdict_totals = self.verdict_totals.plus(windows, verdicts)
        if self.undecided.host is not NO_HOST_WAIT:
            share = _throttled_share(windows, verdicts)
            verdict_totals = verdict_totals.plus_host(self.undecided.host * share)
        return msgspec.structs.replace(
            self._with_windows(windows, limits),
            verdict_totals=verdict_totals,
            slow=self.slow.after(windows, verdicts, limits),
        )

    def _with_windows(self, windows: Iterable[Interval], limits: Limits) -> "DiskTotals":
        """Return totals with latency, load and peaks of windows: of data writes only."""
        data = [window.without_flushes() for window in windows]
        loads = (load_of(each, limits.promise_charges) for each in data)
        return msgspec.structs.replace(
            _with_latency(self, data),
            load=self.load.observe_all((load, 1) for load in loads if load is not None),
            peaks=with_peaks(self.peaks, data),
        )

    def with_host_wait(self, share: HostWait) -> "DiskTotals":
        """Add the disk's share of the iowait and PSI of the last window, which is undecided."""
        host = self.undecided.host + share
        undecided = msgspec.structs.replace(self.undecided, host=host)
        return msgspec.structs.replace(self, undecided=undecided)


def _with_latency(totals: DiskTotals, data: Sequence[Interval]) -> DiskTotals:
    """Return totals with the latency of the requests of intervals."""
    reads = ((each.reads, each.read_ms, each.end_s) for each in data)
    writes = ((each.writes, each.write_ms, each.end_s) for each in data)
    return msgspec.structs.replace(
        totals,
        read_latency=totals.read_latency.plus(reads),
        write_latency=totals.write_latency.plus(writes),
    )


def _throttled_share(windows: Iterable[Interval], verdicts: Iterable[WindowVerdict]) -> float:
    """Return the share of the windows that are throttled, of those that are not idle."""
    busy_s = throttled_s = 0.0
    for window, window_verdict in zip(windows, verdicts, strict=False):
        busy_s += window.seconds if window_verdict.verdict != "idle" else 0.0
        throttled_s += window.seconds if window_verdict.throttle is not None else 0.0
    return throttled_s / busy_s if busy_s else 0.0


def total_recent(recent: tuple[Interval, ...], now_s: float, tick_s: float) -> Interval:
    """Return the sum of the last RECENT_WINDOWS windows; those not in `recent` were idle."""
    horizon_s = RECENT_WINDOWS * tick_s
    windows = [window for window in recent if window.end_s > now_s - horizon_s]
    if not windows:
        return idle(now_s, horizon_s)
    whole = total(windows)
    return msgspec.structs.replace(whole, end_s=now_s, seconds=max(horizon_s, whole.seconds))
