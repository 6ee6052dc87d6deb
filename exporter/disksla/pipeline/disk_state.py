"""One disk under our eyes, from sample to sample."""

from collections.abc import Collection, Mapping

import msgspec

from disksla.config import ProbeKind
from disksla.credits import CreditAccount, open_account
from disksla.disks import Disk
from disksla.limits import Assignment
from disksla.pipeline.probe_results import ProbeResult, ProbeTotals
from disksla.pipeline.totals import AssessedTime, DiskTotals
from disksla.procfs import (
    Counters,
    DiskstatsLine,
    HostWait,
    MalformedLineError,
    Reading,
    difference,
    has_decreased,
    parse_line,
    to_counters,
    unwrap,
)
from disksla.verdict import (
    DetectorState,
    GapReason,
    WindowVerdict,
    after_gap,
    classify,
    interval_of,
)

_LISTED = True


class DiskState(msgspec.Struct, frozen=True, gc=False):
    """What is known of one disk."""

    disk: Disk
    assignment: Assignment
    reading: Reading | None = None
    """Its counters when they were last read."""
    origin: Reading | None = None
    """Where they would have started, had they never wrapped or started over."""
    is_listed: bool = False
    """Its line was there, and could be read, at the last sample."""
    inflight: int = 0
    """Requests in flight at the last sample."""
    totals: DiskTotals = DiskTotals()
    detector: DetectorState = DetectorState()
    window_verdict: WindowVerdict | None = None
    """On the last window; None after a gap."""
    credits: CreditAccount | None = None
    """Its burst credits; None if its terms have none."""
    probes: Mapping[ProbeKind, ProbeTotals] = {}
    """What its probes came to, by kind."""

    @property
    def counters(self) -> Counters | None:
        """What the counters rose by since the disk was first seen; None before that."""
        if self.reading is None or self.origin is None:
            return None
        return to_counters(difference(self.reading, self.origin))

    def credits_at(self, boottime_s: float) -> CreditAccount | None:
        """Give its credits at a time up to which no more was seen of it; None if it has none.

        A disk that is listed did nothing since; one that is not may have done anything.
        """
        limits = self.assignment.limits
        if self.credits is None or limits.burst is None:
            return None
        if self.is_listed:
            return self.credits.after_idle(limits.burst.buckets, boottime_s)
        return self.credits.after_gap(limits, None, boottime_s)

    def with_host_wait(self, part: HostWait) -> "DiskState":
        """Add this disk's part of what the host waited in the last window."""
        totals = msgspec.structs.replace(
            self.totals, verdict_totals=self.totals.verdict_totals.plus_host(part)
        )
        return msgspec.structs.replace(self, totals=totals)

    def with_probe(self, outcome: ProbeResult) -> "DiskState":
        """Add one turn of a probe."""
        totals = self.probes.get(outcome.kind, ProbeTotals()).plus(outcome)
        return msgspec.structs.replace(self, probes={**self.probes, outcome.kind: totals})

    def with_configured_probes(
        self, kinds: Collection[ProbeKind], timestamp_s: float
    ) -> "DiskState":
        """Take note which kinds of probes are asked for, from a Unix time on if they were not."""
        probes = {
            kind: self.probes.get(kind, ProbeTotals()).with_configured(
                timestamp_s if kind in kinds else None
            )
            for kind in {*self.probes, *kinds}
        }
        return msgspec.structs.replace(self, probes=probes)


class TickContext(msgspec.Struct, frozen=True, gc=False):
    """What one sample is to all disks."""

    now_s: float
    """Monotonic time."""
    boottime_s: float
    """Time since boot, suspended time included: limiters do not sleep."""
    last_boottime_s: float
    """The same at the sample before."""
    elapsed_s: float
    """Since the sample before; 0 if the time between cannot be judged."""
    before: AssessedTime
    """Time judged up to the sample before."""
    after: AssessedTime
    """Time judged including this sample."""
    tick_s: float
    """Time that should lie between samples."""
    tolerance_ratio: float
    """Share by which a limit may be missed."""


class DiskUpdate(msgspec.Struct, frozen=True, gc=False):
    """One disk after one sample."""

    watched: DiskState
    active: bool
    """It did something, or has something in flight, or needs another look."""
    gap: GapReason | None = None
    problem: str | None = None
    """What is wrong with its line."""


def update_disk(
    watched: DiskState, lines: list[str], inflight: tuple[int, int] | None, context: TickContext
) -> DiskUpdate:
    """Take one sample of a disk.

    `lines` are its own line of /proc/diskstats and those of its partitions; `inflight` its reads
    and writes in flight by sysfs, if that was read.
    """
    if not lines:
        return _missing(watched, context, "vanished")
    try:
        line = parse_line(lines[0])
        in_flight = sum(inflight) if inflight is not None else _hinted_inflight(line, lines[1:])
    except MalformedLineError as malformed:
        return _missing(watched, context, "malformed", str(malformed))
    before, origin, reading = watched.reading, watched.origin, line.reading
    if before is None or origin is None:
        return DiskUpdate(
            _restarted(watched, context, reading, reading, in_flight), active=in_flight > 0
        )
    if has_decreased(before, reading):
        unwrapped_before = unwrap(before, reading)
        if unwrapped_before is None:
            counters = _fitted(difference(before, origin), reading)
            anew = _restarted(watched, context, reading, difference(reading, counters), in_flight)
            return DiskUpdate(anew, active=True, gap="reset")
        origin = difference(origin, difference(before, unwrapped_before))
        watched = msgspec.structs.replace(watched, reading=unwrapped_before, origin=origin)
    seen = _after_interval(watched, reading, in_flight, context)
    return DiskUpdate(seen, active=in_flight > 0 or reading != before)


def _after_interval(
    watched: DiskState, reading: Reading, inflight: int, context: TickContext
) -> DiskState:
    """Take what the counters rose by since the last sample."""
    limits = watched.assignment.limits
    totals, detector = watched.totals, watched.detector
    slept = totals.settled_at.windows != context.before.windows
    if slept and watched.is_listed:
        totals = totals.settled(context.before, context.now_s)
    elapsed_s = context.elapsed_s if watched.is_listed else 0.0
    if slept or not elapsed_s:
        detector = after_gap(detector)
    interval = interval_of(context.now_s, elapsed_s, watched.reading or (), reading, inflight)
    window_verdict = None
    account = watched.credits or open_account(limits, context.boottime_s)
    if elapsed_s:
        detector, window_verdict = classify(
            detector, interval, limits, context.tolerance_ratio, context.tick_s
        )
        if account is not None:
            proven = window_verdict.throttle if window_verdict.is_confirmed else None
            account = account.after_window(limits, interval, proven, context.boottime_s)
    elif account is not None:
        account = _rested(watched, context) or account
        account = account.after_gap(limits, interval, context.boottime_s, inflight)
    return DiskState(
        watched.disk,
        watched.assignment,
        reading,
        watched.origin,
        _LISTED,
        inflight,
        totals.plus(interval, limits.promise_charges, window_verdict, context.after),
        detector,
        window_verdict,
        account,
        watched.probes,
    )


def _restarted(
    watched: DiskState, context: TickContext, reading: Reading, origin: Reading, inflight: int
) -> DiskState:
    """Begin to look, or begin again: there is no window yet."""
    return DiskState(
        watched.disk,
        watched.assignment,
        reading,
        origin,
        _LISTED,
        inflight,
        msgspec.structs.replace(watched.totals, settled_at=context.after),
        after_gap(watched.detector),
        credits=_out_of_sight(watched, context, inflight),
        probes=watched.probes,
    )


def _out_of_sight(watched: DiskState, context: TickContext, inflight: int) -> CreditAccount | None:
    """Give what is left of credits after a time in which anybody may have used them."""
    limits = watched.assignment.limits
    account = _rested(watched, context)
    if account is None:
        return open_account(limits, context.boottime_s)
    return account.after_gap(limits, None, context.boottime_s, inflight)


def _rested(watched: DiskState, context: TickContext) -> CreditAccount | None:
    """Give credits up to when the disk was last seen: to the last sample, if it was listed."""
    return watched.credits_at(context.last_boottime_s) if watched.is_listed else watched.credits


def _missing(
    watched: DiskState, context: TickContext, gap: GapReason, problem: str | None = None
) -> DiskUpdate:
    """Keep what was counted; nothing is said of the time until the disk is seen again."""
    was_listed = watched.is_listed
    totals = (
        watched.totals.settled(context.before, context.now_s) if was_listed else watched.totals
    )
    unseen = msgspec.structs.replace(
        watched,
        is_listed=False,
        inflight=0,
        totals=totals,
        detector=after_gap(watched.detector),
        window_verdict=None,
        credits=_rested(watched, context),
    )
    return DiskUpdate(
        unseen, active=problem is not None, gap=gap if was_listed else None, problem=problem
    )


def _fitted(counters: Reading, reading: Reading) -> Reading:
    """Give totals as many fields as a reading has, should another kind of disk have come."""
    return (*counters, *(0,) * len(reading))[: len(reading)]


def _hinted_inflight(own: DiskstatsLine, partitions: list[str]) -> int:
    """Give the requests in flight as /proc/diskstats has them.

    From 6.12 on the whole disk's line leaves out what was sent to its partitions; before, it
    includes them. The larger of the two is right unless both are used at once.
    """
    return max(own.inflight or 0, sum(parse_line(line).inflight or 0 for line in partitions))
