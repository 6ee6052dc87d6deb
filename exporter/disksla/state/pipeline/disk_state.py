"""State of one monitored disk, and its update by one sample."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from disksla.base.counts import total
from disksla.clouds.ebs_statistics import Failure, Reading
from disksla.kernel import procfs
from disksla.kernel.consumers import NO_CONSUMERS, ConsumerTotals, Consumption, OwnLimit, Who
from disksla.kernel.disks import Disk
from disksla.kernel.nfs import MountState
from disksla.promise.catalogue import Assignment
from disksla.promise.configuration import ProbeKind, is_machine_known
from disksla.state.pipeline import assessment
from disksla.state.pipeline.odd_counters import (
    DataWrites,
    more_never_done,
    why_impossible,
    without_never_done,
)
from disksla.state.pipeline.probe_results import ProbeResult, ProbeTotals
from disksla.state.provider_count import ProviderState
from disksla.verdict.credits import CreditAccount
from disksla.verdict.interval import GapReason, Interval, interval_of
from disksla.verdict.throttling import MachineWindow, SharedWindow, after_gap

_AT_LIMIT = ("throttled", "met")
_READS, _WRITES = procfs.Counters._fields.index("reads"), procfs.Counters._fields.index("writes")


class DiskState(assessment.Assessed, frozen=True, kw_only=True, gc=False):
    """Everything known of one disk."""

    disk: Disk
    assignment: Assignment  # its terms, and the limits that follow from them
    reading: procfs.CounterValues | None = None
    """Its counters at the last sample in which it was listed; None before the first."""
    origin: procfs.CounterValues | None = None
    """Where its counters would have started if they had never wrapped or been reset:
    `reading - origin` is the total since disksla first sampled the disk."""
    inflight: int = 0  # requests in flight at the last sample, without `never_done`
    never_done: int = 0
    """Requests that the kernel has in flight although others completed at once after a silence:
    on kernels whose count does not return to 0, and where a request is lost."""
    probes: Mapping[ProbeKind, ProbeTotals] = {}
    data_writes: DataWrites = DataWrites()
    provider: ProviderState | None = None
    """What its statistics page says; None if it was never read."""
    consumers: ConsumerTotals = NO_CONSUMERS  # what consumers used of it, while it was watched
    mount: MountState | None = None
    """What else the kernel counts of an NFS mount; None for a block device."""

    @property
    def counters(self) -> procfs.Counters | None:
        """Increase of the counters since the first sample of the disk; None before it."""
        if self.reading is None or self.origin is None:
            return None
        return procfs.to_counters(procfs.difference(self.reading, self.origin))

    def credits_at(self, boottime_s: float) -> CreditAccount | None:
        """Return the credits at a time after the last update; None if the disk has none."""
        return assessment.credits_at(self, self.assignment.limits, boottime_s)

    @property
    def is_at_limit(self) -> bool:
        """Whether it was at its limit in the last second that is decided."""
        own = self.window_verdict
        return own is not None and own.verdict in _AT_LIMIT

    @property
    def is_pending(self) -> bool:
        """Whether windows wait for a verdict. Then it is updated while it is idle, too."""
        return bool(self.detector.pending or self.totals.undecided.waiting.verdicts)

    @property
    def throttle_wait_s(self) -> float | None:
        """I/O-seconds that requests spent in the last window, while it is undecided; else None."""
        last = self.totals.undecided.windows[-1:]
        return last[0].inflight * last[0].seconds if last else None

    def with_host_wait(self, share: procfs.HostWait) -> "DiskState":
        """Add the disk's share of the iowait and PSI of the last window."""
        return msgspec.structs.replace(self, totals=self.totals.with_host_wait(share))

    def with_probe(self, result: ProbeResult) -> "DiskState":
        """Add the result of a probe."""
        totals = self.probes.get(result.kind, ProbeTotals()).plus(result)
        return msgspec.structs.replace(self, probes={**self.probes, result.kind: totals})

    def with_provider(self, messages: Iterable[Reading | Failure], tick_s: float) -> "DiskState":
        """Add the readings of its statistics page at a tick, but for those of another volume."""
        own = [
            each
            for each in messages
            if isinstance(each, Failure) or self.disk.serial in {None, each.serial}
        ]
        if not own:
            return self
        provider = (self.provider or ProviderState()).after(own, tick_s)
        return msgspec.structs.replace(self, provider=provider)

    def with_consumers(
        self,
        span_s: tuple[float, float],
        found: Iterable[Consumption],
        may_be_named: frozenset[Who] | None,
    ) -> "DiskState":
        """Add what consumers used of it; the last second that is decided says if throttled."""
        own = self.window_verdict
        consumers = self.consumers.plus(
            span_s,
            found,
            is_throttled=own is not None and own.throttle is not None,
            may_be_named=may_be_named,
        )
        return msgspec.structs.replace(self, consumers=consumers)

    def without_silent(self, since_s: float) -> "DiskState":
        """Remove the series of consumers that were seen last before a monotonic time."""
        silent = any(at_s < since_s for at_s in self.consumers.used_s.values())
        consumers = self.consumers.without_silent(since_s) if silent else self.consumers
        return msgspec.structs.replace(self, consumers=consumers) if silent else self

    def with_own_limit(self, own: OwnLimit, now_s: float) -> "DiskState":
        """Add a group that is held at its own limit, unless the disk is throttled."""
        if self.window_verdict is not None and self.window_verdict.throttle is not None:
            return self
        return msgspec.structs.replace(self, consumers=self.consumers.with_own_limit(own, now_s))

    def with_configured_probes(
        self, kinds: Collection[ProbeKind], timestamp_s: float
    ) -> "DiskState":
        """Set which kinds of probes are configured; `timestamp_s` (Unix time) is for new ones."""
        probes = {
            kind: self.probes.get(kind, ProbeTotals()).with_configured(
                timestamp_s if kind in kinds else None
            )
            for kind in {*self.probes, *kinds}
        }
        return msgspec.structs.replace(self, probes=probes)


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One disk at one sample, before its verdict."""

    disk_state: DiskState  # as before the sample, if there is an interval
    active: bool  # update the disk at the next tick even if its line does not change
    interval: Interval | None = None
    """Increase of the counters; None where there is none, and `disk_state` is complete."""
    reading: procfs.CounterValues | None = None
    inflight: int = 0
    gap: GapReason | None = None
    problem: str | None = None  # why its line could not be parsed
    close: tuple[procfs.CloseSample, ...] = ()  # close samples within the interval

    @property
    def fewest(self) -> Interval | None:
        """The interval with the least number of data writes; None if that is certain."""
        interval = self.interval
        if interval is None or interval.is_exact:
            return None
        last = self.disk_state.totals.recent[-1:]
        if not (interval.flushes or (last and last[0].has_flushes)):
            return None
        return interval.with_fewest_writes(self.disk_state.disk.largest_request_bytes)


def read_disk(
    disk_state: DiskState,
    lines: list[str],
    inflight: tuple[int, int] | None,
    context: assessment.TickContext,
    data_writes: tuple[int, int] | None = None,
    close: tuple[procfs.CloseSample, ...] = (),
    counted: Sequence[str] = (),
) -> Sample:
    """Return a sample of a disk.

    `lines` are its own line of /proc/diskstats and then those of its partitions; `inflight` are
    its reads and writes in flight from sysfs, if they were read, `data_writes` the exact count of
    its data writes, if there is one, and `close` its close samples since the tick before.
    `counted` are the lines that add up to its counters, if that is not its own.
    """
    if not lines:
        return missing(disk_state, context, "vanished")
    try:
        at_paths = bool(counted) and list(counted) != lines[:1]
        line = total(map(procfs.parse_line, counted)) if at_paths else procfs.parse_line(lines[0])
        has_completions = disk_state.reading is None or _completed(
            disk_state.reading, line.reading
        )
        partitions = [] if at_paths else lines[1:]
        in_flight = _inflight(line, partitions, inflight, has_completions=has_completions)
    except procfs.MalformedLineError as error:
        return missing(disk_state, context, "malformed", str(error))
    never_done = min(disk_state.never_done, in_flight)
    in_flight -= never_done
    if never_done != disk_state.never_done:
        disk_state = msgspec.structs.replace(disk_state, never_done=never_done)
    before, origin, reading = disk_state.reading, disk_state.origin, line.reading
    disk_state, exact = _counted(disk_state, data_writes)
    if before is None or origin is None:
        first = without_interval(disk_state, context, reading, reading, in_flight)
        return Sample(first, active=in_flight > 0)
    if procfs.has_decreased(before, reading):
        unwrapped_before = procfs.unwrap(before, reading)
        if unwrapped_before is None:
            return rebased(disk_state, context, reading, in_flight, "reset")
        origin = procfs.difference(origin, procfs.difference(before, unwrapped_before))
        disk_state = msgspec.structs.replace(disk_state, reading=unwrapped_before, origin=origin)
    # The increase is a window if the disk was listed at the sample before and the time between is
    # not a gap. Otherwise it has no duration.
    elapsed_s = context.elapsed_s if disk_state.is_listed else 0.0
    present = disk_state.reading or ()
    interval = interval_of(
        context.now_s,
        elapsed_s,
        present,
        reading,
        inflight=in_flight,
        inflight_before=disk_state.inflight,
    )
    problem = why_impossible(interval, present, reading)
    if problem is not None:
        sample = rebased(disk_state, context, reading, in_flight, "malformed")
        return msgspec.structs.replace(sample, problem=problem)
    if exact is not None and (exact or not interval.written_bytes):
        interval = interval.with_data_writes(exact)
    active = in_flight > 0 or reading != before
    return _without_never_done(
        Sample(disk_state, active, interval, reading, in_flight, close=close)
    )


def rebased(
    disk_state: DiskState,
    context: assessment.TickContext,
    reading: procfs.CounterValues,
    inflight: int,
    gap: GapReason,
) -> Sample:
    """Return a sample after which the totals of a disk go on from other counters."""
    total = procfs.difference(disk_state.reading or (), disk_state.origin or ())
    # After a reset the kernel may print another number of fields.
    of_length = (*total, *(0,) * len(reading))[: len(reading)]
    origin = procfs.difference(reading, of_length)
    after = without_interval(disk_state, context, reading, origin, inflight)
    return Sample(after, active=True, gap=gap)


def _without_never_done(sample: Sample) -> Sample:
    """Return a sample without requests in flight that are never done."""
    disk_state, interval = sample.disk_state, sample.interval
    if interval is None:
        return sample
    more = more_never_done(disk_state.inflight, disk_state.detector.silent_s, interval)
    never_done = disk_state.never_done + more
    if not never_done:
        return sample
    inflight = sample.inflight - more
    return msgspec.structs.replace(
        sample,
        disk_state=msgspec.structs.replace(disk_state, never_done=never_done),
        active=sample.active and (inflight > 0 or sample.reading != disk_state.reading),
        interval=msgspec.structs.replace(interval, inflight=inflight, busy_ms=0),
        inflight=inflight,
        close=without_never_done(sample.close, never_done),
    )


def judge_disk(
    sample: Sample, context: assessment.TickContext, shared: SharedWindow | None = None
) -> DiskState:
    """Return the state of a disk after a sample; `shared` is the window of its group."""
    disk_state, interval = sample.disk_state, sample.interval
    if interval is None:
        return disk_state
    limits = disk_state.assignment.limits
    fewest = sample.fewest if limits.burst is not None else None
    assessed = assessment.assess(
        disk_state,
        limits=limits,
        interval=interval,
        context=context,
        close=sample.close,
        fewest=fewest,
        machine=MachineWindow(
            shared, is_machine_known(disk_state.assignment, context.unknown_machines)
        ),
        provider=disk_state.provider,
    )
    return msgspec.structs.replace(
        disk_state, reading=sample.reading, inflight=sample.inflight, **assessed
    )


def _counted(
    disk_state: DiskState, reading: tuple[int, int] | None
) -> tuple[DiskState, int | None]:
    """Return the state with an exact count, and the data writes since the last, if known."""
    if reading is None and not disk_state.data_writes.opening:
        return disk_state, None
    data_writes, exact = disk_state.data_writes.plus(reading)
    return msgspec.structs.replace(disk_state, data_writes=data_writes), exact


def without_interval(
    disk_state: DiskState,
    context: assessment.TickContext,
    reading: procfs.CounterValues,
    origin: procfs.CounterValues,
    inflight: int,
) -> DiskState:
    """Return the state after a first sample, or after a reset of the counters."""
    assessed = assessment.assess_gap(disk_state, disk_state.assignment.limits, context, inflight)
    return msgspec.structs.replace(
        disk_state, reading=reading, origin=origin, inflight=inflight, **assessed
    )


def missing(
    disk_state: DiskState,
    context: assessment.TickContext,
    gap: GapReason,
    problem: str | None = None,
) -> Sample:
    """Keep the totals of a disk without a valid line; the time without it is not assessed."""
    was_listed = disk_state.is_listed
    limits = disk_state.assignment.limits
    missing = msgspec.structs.replace(
        disk_state,
        is_listed=False,
        inflight=0,
        totals=assessment.totals_at_last_sample(disk_state, limits, context),
        detector=after_gap(disk_state.detector),
        window_verdict=None,
        decided=(),
        by_signs=(),
        credits=assessment.credits_at_last_sample(disk_state, limits, context),
    )
    return Sample(
        missing, active=problem is not None, gap=gap if was_listed else None, problem=problem
    )


def _completed(before: procfs.CounterValues, after: procfs.CounterValues) -> bool:
    """Return whether reads or writes completed between two readings."""
    return before[_READS] != after[_READS] or before[_WRITES] != after[_WRITES]


def _inflight(
    own: procfs.DiskstatsLine,
    partitions: list[str],
    in_sysfs: tuple[int, int] | None,
    *,
    has_completions: bool,
) -> int:
    """Return the requests in flight.

    Without partitions, the line of the disk has them. With partitions, sysfs has: before Linux
    6.12 the line of the whole disk includes requests that were sent to its partitions, since then
    it leaves them out. Where sysfs was not read, the larger of the two is right unless both are
    used at the same time. Sysfs leaves out a write that commits a journal while its data is
    written (Linux 6.18): if it has no request and none completed, the line of the disk decides.
    """
    if not partitions:
        return own.inflight or 0
    if in_sysfs is None:
        return max(
            own.inflight or 0, sum(procfs.parse_line(line).inflight or 0 for line in partitions)
        )
    if has_completions:
        return sum(in_sysfs)
    return sum(in_sysfs) or own.inflight or 0
