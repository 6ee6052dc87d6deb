"""Snapshot of a state: what metrics, the status page and commands show.

A snapshot is made on request, because the totals of idle disks are not updated at every tick:
`take_snapshot` brings them up to date. Do not publish values of a `State` directly.
"""

import math
from collections.abc import Collection, Iterable, Mapping

import msgspec

from disksla.base.histogram import Histogram
from disksla.base.operating_system import SourceHealth
from disksla.kernel.consumers import NO_CONSUMERS, ConsumerTotals
from disksla.kernel.disks import Disk
from disksla.kernel.nfs import MountReading
from disksla.kernel.procfs import Counters, HostWait
from disksla.promise.catalogue import Assignment, Limits, SharedLimits, TermsSource
from disksla.promise.configuration import (
    PROBE_KINDS,
    ProbeKind,
    Profile,
    UnusedEntry,
    machine_type_of,
)
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.group_state import GroupState
from disksla.state.pipeline.peaks import Traffic, highest, traffic_of
from disksla.state.pipeline.probe_results import ProbeTotals
from disksla.state.pipeline.sampler_stats import SOURCES
from disksla.state.pipeline.slow import Direction, SlowTotals
from disksla.state.pipeline.state import State
from disksla.state.pipeline.totals import AssessedTime, DiskTotals, VerdictTotals, sum_recent
from disksla.state.provider_count import ProviderState
from disksla.verdict.credits import CreditLevel
from disksla.verdict.interval import Clocks, Interval, load_of
from disksla.verdict.throttling import MACHINE_LIMITS, Ceiling, LimitKind, Throttle, Verdict


class DiskSnapshot(msgspec.Struct, frozen=True):
    """One monitored disk."""

    disk: Disk
    assignment: Assignment
    counters: Counters | None
    """Increase since this daemon first sampled the disk, unwrapped; None before that."""
    inflight: int | None
    """Requests in flight at the last sample; None if the disk was not listed in it."""
    read_latency_s: Histogram
    write_latency_s: Histogram
    load: Histogram | None
    """Load of each window; None if the terms promise nothing."""
    peak: Traffic
    """Highest rates of any window within the last minute."""
    present: Traffic
    """Mean rates over the last second or so."""
    present_load: float | None
    """Load over the same time; None if the terms promise nothing."""
    verdict: Verdict | None = None
    """Verdict on the last window; None after a gap."""
    throttle: Throttle | None = None
    """Where it is throttled, if it is."""
    verdict_totals: VerdictTotals = VerdictTotals()
    """Seconds by verdict and by limit, and what throttling cost."""
    ceiling: Ceiling | None = None
    """Rate at which the disk was last throttled."""
    slow: SlowTotals = SlowTotals()
    """How long the disk was slow."""
    usual_latency_s: Mapping[Direction, float] = {}
    """Of a small request that is alone; without those that are not known."""
    credits: tuple[CreditLevel, ...] = ()
    """Burst credits by resource; empty if the terms have no burst."""
    probes: Mapping[ProbeKind, ProbeTotals] = {}
    """Totals of probes by kind; kinds that are configured are present from the start."""
    groups: tuple[str, ...] = ()
    """Groups that the disk is in, which share limits of the machine."""
    data_writes: int | None = None
    """Counted exactly since the first count; None while they are not counted."""
    machine_type: str | None = None
    """Of the provider, by the best source; None if it is not known."""
    probe_intervals_s: Mapping[ProbeKind, float | None] = {}
    """Configured time between probes, by kind; None for a schedule in crontab format."""
    provider: ProviderState | None = None
    """What its statistics page says; None if it was never read."""
    provider_is_current: bool = False
    """Whether the page was read lately."""
    consumers: ConsumerTotals = NO_CONSUMERS
    """What consumers used of it, while it was watched."""
    why_no_consumers: str | None = None
    """Why they are not known; None while they are, or before that is known."""
    mount: MountReading | None = None
    """What the kernel counts of an NFS mount since it was mounted; None for a block device."""


class GroupSnapshot(msgspec.Struct, frozen=True):
    """One group of monitored disks that share limits of the machine."""

    shared: SharedLimits
    devices: tuple[str, ...]
    load: Histogram
    """Load of each window."""
    present_load: float | None
    """Load over the last second or so."""
    throttled_s: Mapping[LimitKind, float]
    """Seconds in which requests of the group waited for its limit, by limit."""
    credits: tuple[CreditLevel, ...] = ()
    """Burst credits by resource; empty if the limits have no burst."""


class SamplerSnapshot(msgspec.Struct, frozen=True):
    """Ticks, gaps and errors of the sampler."""

    ticks: int
    missed_ticks: int
    lateness_s: Histogram
    gaps: Mapping[str, int]
    """Gaps by reason; every reason is present from the start."""
    errors: Mapping[str, int]
    """Errors by source; every source is present from the start."""
    collectors: Mapping[str, bool]
    """Whether each source could be read at the last attempt."""
    problems: Mapping[str, str] = {}
    """Error messages of sources that could not be read, where there is one."""


class TermsSnapshot(msgspec.Struct, frozen=True):
    """What the entries of the configuration and of terms files say, by source."""

    as_of_timestamp_s: Mapping[TermsSource, float] = {}
    """When the oldest file of a source was true, in seconds since 1970."""
    expiry_timestamp_s: Mapping[TermsSource, float] = {}
    """Until when all files of a source may be relied on; without those that do not say it."""
    unused: tuple[UnusedEntry, ...] = ()
    """Entries that apply to no disk."""
    problems: tuple[str, ...] = ()
    """What `disksla detect` could not find out, a machine type that is not known, and terms of
    which no limits follow."""
    failures: Mapping[tuple[TermsSource, str], int] = {}
    """Files that could not be read, and questions that were not answered, by source and reason."""


class Snapshot(msgspec.Struct, frozen=True):
    """All monitored disks, and the sampler, at the last sample."""

    disks: tuple[DiskSnapshot, ...]
    sampler: SamplerSnapshot
    groups: tuple[GroupSnapshot, ...] = ()
    terms: TermsSnapshot = TermsSnapshot()
    timestamp_s: float = 0.0
    """Wall-clock time of the last sample, in seconds since 1970; 0 before the first."""
    profile: Profile = "default"
    """Which metrics are published."""

    def with_terms_failures(self, failures: Mapping[tuple[TermsSource, str], int]) -> "Snapshot":
        """Return the snapshot with the failures of reading and finding out terms."""
        terms = msgspec.structs.replace(self.terms, failures=failures)
        return msgspec.structs.replace(self, terms=terms)

    def with_health(self, sources: Iterable[SourceHealth]) -> "Snapshot":
        """Return the snapshot with the health of parts other than the sampler."""
        errors, collectors = dict(self.sampler.errors), dict(self.sampler.collectors)
        problems = dict(self.sampler.problems)
        for health in sources:
            errors[health.source] = health.errors
            if health.works is not None:
                collectors[health.source] = health.works
            if health.problem is not None:
                problems[health.source] = health.problem
        sampler = msgspec.structs.replace(
            self.sampler, errors=errors, collectors=collectors, problems=problems
        )
        return msgspec.structs.replace(self, sampler=sampler)


def take_snapshot(state: State) -> Snapshot:
    """Return a snapshot of a state, with the disks in the order of their names."""
    stats = state.sampler_stats
    return Snapshot(
        disks=tuple(
            _disk_snapshot(disk_state, state) for _, disk_state in sorted(state.monitored.items())
        ),
        sampler=SamplerSnapshot(
            ticks=stats.ticks,
            missed_ticks=stats.missed_ticks,
            lateness_s=stats.lateness_s,
            gaps=stats.gaps,
            errors=stats.errors,
            collectors={source: stats.works(source) for source in SOURCES},
            problems=stats.problems,
        ),
        terms=_terms_snapshot(state),
        timestamp_s=state.clocks.realtime_s if state.clocks is not None else 0.0,
        groups=tuple(
            _group_snapshot(group, state)
            for _, group in sorted(state.groups.items())
            if not group.shared.of_type
        ),
        profile=state.settings.metrics.profile,
    )


def disk_snapshot(state: State, device: str) -> DiskSnapshot | None:
    """Return the snapshot of one disk; None if it is not monitored."""
    disk_state = state.monitored.get(device)
    return None if disk_state is None else _disk_snapshot(disk_state, state)


def _terms_snapshot(state: State) -> TermsSnapshot:
    as_of_s: dict[TermsSource, float] = {}
    expiry_s: dict[TermsSource, float] = {}
    for file in state.terms_files:
        for times_s, time_s in (
            (as_of_s, file.as_of_timestamp_s),
            (expiry_s, file.expiry_timestamp_s),
        ):
            if time_s is not None:
                times_s[file.source] = min(times_s.get(file.source, math.inf), time_s)
    problems = [problem.message for file in state.terms_files for problem in file.problems]
    problems += [] if state.machine_problem is None else [state.machine_problem]
    problems += [
        f"{device}: {disk_state.assignment.reason}"
        for device, disk_state in sorted(state.monitored.items())
        if disk_state.assignment.problem is not None
    ]
    return TermsSnapshot(as_of_s, expiry_s, state.unused, tuple(problems))


def _group_snapshot(group: GroupState, state: State) -> GroupSnapshot:
    now_s = state.clocks.monotonic_s if state.clocks is not None else 0.0
    read = state.mounts_read if group.shared.device is not None else None
    assessed = read.assessed if read else state.assessed
    limits = group.shared.limits
    totals = group.totals.with_undecided(limits).with_idle_until(assessed, now_s)
    recent = _last_second(totals, assessed, state)
    return GroupSnapshot(
        shared=group.shared,
        devices=group.devices,
        load=totals.load,
        present_load=load_of(recent, limits.promise_charges),
        throttled_s={
            limit: group.throttled_s.get(shown, 0.0) for limit, shown in MACHINE_LIMITS.items()
        },
        credits=_levels(group, limits, recent, state.clocks),
    )


def _disk_snapshot(disk_state: DiskState, state: State) -> DiskSnapshot:
    now_s = state.clocks.monotonic_s if state.clocks is not None else 0.0
    limits, assessed = disk_state.assignment.limits, state.assessed_of(disk_state.disk)
    totals = disk_state.totals.with_undecided(limits)
    if disk_state.is_listed:
        totals = totals.with_idle_until(assessed, now_s)
    recent = _last_second(totals, assessed, state)
    promise = limits.promise_charges
    is_idle = disk_state.is_listed and disk_state.disk.name not in state.active
    window_verdict = disk_state.window_verdict
    configured = state.settings.probes_of(disk_state.disk.name)
    return DiskSnapshot(
        disk=disk_state.disk,
        assignment=disk_state.assignment,
        counters=disk_state.counters,
        inflight=disk_state.inflight if disk_state.is_listed else None,
        read_latency_s=totals.read_latency.histogram,
        write_latency_s=totals.write_latency.histogram,
        load=totals.load if promise else None,
        peak=highest(totals.peaks, now_s),
        verdict="idle"
        if is_idle
        else window_verdict.verdict
        if window_verdict is not None
        else None,
        throttle=None if is_idle or window_verdict is None else window_verdict.throttle,
        verdict_totals=msgspec.structs.replace(
            totals.verdict_totals,
            host=HostWait()
            if disk_state.disk.is_mount  # waits for a server do not raise them
            else totals.verdict_totals.host.where_known(state.last_host),
        ),
        ceiling=disk_state.detector.ceiling,
        slow=totals.slow,
        usual_latency_s=totals.slow.usual_latencies_s(now_s),
        credits=_levels(disk_state, limits, recent, state.clocks),
        groups=tuple(
            name
            for name, group in state.groups.items()
            if disk_state.disk.name in group.devices and not group.shared.of_type
        ),
        probes=_probes(disk_state, configured),
        machine_type=machine_type_of(state.settings, state.terms_files),
        probe_intervals_s=configured,
        present=traffic_of(recent),
        present_load=load_of(recent, promise),
        data_writes=disk_state.data_writes.exact_total,
        provider=disk_state.provider,
        provider_is_current=disk_state.provider is not None
        and disk_state.provider.is_current(now_s),
        consumers=disk_state.consumers if state.settings.consumers else NO_CONSUMERS,
        why_no_consumers=state.why_no_consumers,
        mount=None if disk_state.mount is None else disk_state.mount.reading,
    )


def _last_second(totals: DiskTotals, assessed: AssessedTime, state: State) -> Interval:
    """Return the last second until the counters were read, which may be before the last tick."""
    now_s = state.clocks.monotonic_s if state.clocks is not None else 0.0
    read_s = now_s - (state.assessed.seconds - assessed.seconds)
    tick_s = state.settings.sampling.interval_s
    return sum_recent(totals.recent, read_s, tick_s).without_flushes()


def _levels(
    state: DiskState | GroupState, limits: Limits, recent: Interval, clocks: Clocks | None
) -> tuple[CreditLevel, ...]:
    account = state.credits_at(clocks.boottime_s) if clocks is not None else None
    return account.levels(limits, recent) if account is not None else ()


def _probes(
    disk_state: DiskState, configured: Collection[ProbeKind]
) -> dict[ProbeKind, ProbeTotals]:
    return {
        kind: disk_state.probes.get(kind, ProbeTotals())
        for kind in PROBE_KINDS
        if kind in configured or (kind in disk_state.probes and disk_state.probes[kind].is_used)
    }
