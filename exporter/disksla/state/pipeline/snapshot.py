"""What metrics, the status page and commands show of a state; each value is made when asked for.

The totals of idle disks are not updated at every tick; here they are complete. Do not publish
values of a `State` directly.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from disksla.base.histogram import Histogram
from disksla.base.operating_system import SourceHealth
from disksla.kernel.consumers import NO_CONSUMERS
from disksla.kernel.procfs import HostWait
from disksla.promise.array_promise import Array, ArrayPromise, Bound, arrays_of, promise_of
from disksla.promise.catalogue import Limits, TermsSource
from disksla.promise.configuration import PROBE_KINDS, ProbeKind, UnusedEntry, machine_type_of
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.group_state import GroupState
from disksla.state.pipeline.probe_results import ProbeTotals
from disksla.state.pipeline.sampler_stats import SamplerStats
from disksla.state.pipeline.slow import Direction, SlowTotals
from disksla.state.pipeline.state import State
from disksla.state.pipeline.totals import (
    DiskTotals,
    Traffic,
    VerdictTotals,
    highest,
    total_recent,
    traffic_of,
)
from disksla.verdict import throttling
from disksla.verdict.credits import CreditLevel
from disksla.verdict.interval import Interval, load_of


class _Judged:
    """What a disk and a group of disks have in common."""

    def __init__(
        self, judged: DiskState | GroupState, limits: Limits, state: State, *, is_mount: bool
    ) -> None:
        """Show a part of a state."""
        self._judged, self._limits, self._state = judged, limits, state
        self._assessed = state.assessed_of(is_mount=is_mount)

    @cached_property
    def totals(self) -> DiskTotals:
        """Sums over all windows, those that are undecided and those that were idle included."""
        totals = self._judged.totals.with_undecided(self._limits)
        if not self._judged.is_listed:
            return totals
        return totals.with_idle_until(self._assessed, self._state.now_s)

    @cached_property
    def present_load(self) -> float | None:
        """Load over the last second or so; None if the terms promise nothing."""
        return load_of(self._last_second, self._limits.promise_charges)

    @cached_property
    def credits(self) -> tuple[CreditLevel, ...]:
        """Burst credits by resource; empty without a burst."""
        clocks = self._state.clocks
        account = None if clocks is None else self._judged.credits_at(clocks.boottime_s)
        return () if account is None else account.levels(self._limits, self._last_second)

    @cached_property
    def _last_second(self) -> Interval:
        """The last second until the counters were read, which may be before the last tick."""
        state = self._state
        read_s = state.now_s - (state.assessed.seconds - self._assessed.seconds)
        tick_s = state.settings.sampling.interval_s
        return total_recent(self.totals.recent, read_s, tick_s).without_flushes()


class GroupSnapshot(_Judged):
    """One group of monitored disks that share limits of the machine."""

    def __init__(self, group: GroupState, state: State) -> None:
        """Show a group of a state."""
        is_of_mounts = group.shared.device is not None
        super().__init__(group, group.shared.limits, state, is_mount=is_of_mounts)
        self.shared, self.devices, self._group = group.shared, group.devices, group

    @cached_property
    def throttled_s(self) -> Mapping[throttling.LimitKind, float]:
        """Seconds in which requests of the group waited for its limit, by limit."""
        by_limit = self._group.throttled_s
        return {
            limit: by_limit.get(shown, 0.0) for limit, shown in throttling.MACHINE_LIMITS.items()
        }


class DiskSnapshot(_Judged):
    """One monitored disk."""

    def __init__(self, disk_state: DiskState, state: State) -> None:
        """Show a disk of a state."""
        self.disk, self.assignment = disk_state.disk, disk_state.assignment
        self._disk_state = disk_state
        super().__init__(
            disk_state, disk_state.assignment.limits, state, is_mount=self.disk.is_mount
        )
        self.counters = disk_state.counters
        """Increase since this daemon first sampled the disk, unwrapped; None before that."""
        self.inflight = disk_state.inflight if disk_state.is_listed else None
        """Requests in flight at the last sample; None if the disk was not listed in it."""
        self.ceiling = disk_state.detector.ceiling  # rate at which the disk was last throttled
        self.data_writes = disk_state.data_writes.exact_total
        """Counted exactly since the first count; None while they are not counted."""
        self.provider = disk_state.provider
        """What its statistics page says; None if it was never read."""
        self.consumers = disk_state.consumers if state.settings.consumers else NO_CONSUMERS
        """What consumers used of it, while it was watched."""
        self.why_no_consumers = state.why_no_consumers
        """Why they are not known; None while they are, or before that is known."""
        self.mount = None if disk_state.mount is None else disk_state.mount.reading
        """What the kernel counts of an NFS mount since it was mounted; None for a block device."""
        files = state.configuration.terms_files
        self.machine_type = machine_type_of(state.settings, files)
        """Of the provider, by the best source; None if it is not known."""

    @cached_property
    def load(self) -> Histogram | None:
        """Load of each window; None if the terms promise nothing."""
        return self.totals.load if self._limits.promise_charges else None

    @cached_property
    def peak(self) -> Traffic:
        """Highest rates of any window within the last minute."""
        return highest(self.totals.peaks, self._state.now_s)

    @cached_property
    def present(self) -> Traffic:
        """Mean rates over the last second or so."""
        return traffic_of(self._last_second)

    @cached_property
    def verdict(self) -> throttling.Verdict | None:
        """Verdict on the last window; None after a gap."""
        return None if self._window is None else self._window.verdict

    @cached_property
    def throttle(self) -> throttling.Throttle | None:
        """Where it is throttled, if it is."""
        return None if self._window is None else self._window.throttle

    @cached_property
    def _window(self) -> throttling.WindowVerdict | None:
        """The last second that is decided; idle if the disk was since. None after a gap."""
        is_idle = self._disk_state.is_listed and self.disk.name not in self._state.active
        return throttling.WindowVerdict("idle") if is_idle else self._disk_state.window_verdict

    @cached_property
    def verdict_totals(self) -> VerdictTotals:
        """Seconds by verdict and by limit, and what throttling cost."""
        totals = self.totals.verdict_totals
        host = totals.host.where_known(self._state.last_host)
        return msgspec.structs.replace(
            totals,
            host=HostWait() if self.disk.is_mount else host,  # a server's waits do not raise it
        )

    @cached_property
    def slow(self) -> SlowTotals:
        """How long the disk was slow."""
        return self.totals.slow

    @cached_property
    def usual_latency_s(self) -> Mapping[Direction, float]:
        """Of a small request that is alone; without those that are not known."""
        return self.slow.usual_latencies_s(self._state.now_s)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups that the disk is in, which share limits of the machine."""
        groups = self._state.groups.items()
        return tuple(
            name
            for name, group in groups
            if self.disk.name in group.devices and not group.shared.of_type
        )

    @cached_property
    def probe_intervals_s(self) -> Mapping[ProbeKind, float | None]:
        """Configured time between probes, by kind; None for a schedule in crontab format."""
        return self._state.settings.probes_of(self.disk.name)

    @cached_property
    def probes(self) -> Mapping[ProbeKind, ProbeTotals]:
        """Totals of probes by kind; kinds that are configured are present from the start."""
        totals = self._disk_state.probes
        return {
            kind: totals.get(kind, ProbeTotals())
            for kind in PROBE_KINDS
            if kind in self.probe_intervals_s or (kind in totals and totals[kind].is_used)
        }

    @cached_property
    def provider_is_current(self) -> bool:
        """Whether the page was read lately."""
        return self.provider is not None and self.provider.is_current(self._state.now_s)


class ArraySnapshot(NamedTuple):
    """Several disks that are used as one device, with what it is promised."""

    array: Array
    promise: ArrayPromise | None
    disks: Sequence[DiskSnapshot]  # those of its disks that are monitored


class TermsSnapshot(msgspec.Struct, frozen=True):
    """What the entries of the configuration and of terms files say, by source."""

    as_of_timestamp_s: Mapping[TermsSource, float] = {}
    """When the oldest file of a source was true, in seconds since 1970."""
    expiry_timestamp_s: Mapping[TermsSource, float] = {}
    """Until when all files of a source may be relied on; without those that do not say it."""
    unused: tuple[UnusedEntry, ...] = ()  # entries that apply to no disk
    problems: tuple[str, ...] = ()
    """What `disksla detect` could not find out, a machine type that is not known, and terms of
    which no limits follow."""
    failures: Mapping[tuple[TermsSource, str], int] = {}
    """Files that could not be read, and questions that were not answered, by source and reason."""


class Snapshot:
    """All monitored disks, and the sampler, at the last sample."""

    def __init__(
        self,
        state: State,
        health: Iterable[SourceHealth] = (),
        terms_failures: Mapping[tuple[TermsSource, str], int] | None = None,
    ) -> None:
        """Show a state, the health of parts other than the sampler, and failures of terms."""
        self._state, self._health, self._terms_failures = state, health, terms_failures or {}
        self.profile = state.settings.metrics.profile

    @cached_property
    def disks(self) -> tuple[DiskSnapshot, ...]:
        """The disks in the order of their names."""
        monitored = sorted(self._state.monitored.items())
        return tuple(DiskSnapshot(disk_state, self._state) for _, disk_state in monitored)

    @cached_property
    def groups(self) -> tuple[GroupSnapshot, ...]:
        """The groups in the order of their names, but those of a type of disks."""
        groups = sorted(self._state.groups.items())
        return tuple(
            GroupSnapshot(group, self._state) for _, group in groups if not group.shared.of_type
        )

    @cached_property
    def arrays(self) -> tuple[ArraySnapshot, ...]:
        """The arrays on several disks, of which one is monitored at least, by their names."""
        monitored = {each.disk.name: each for each in self.disks}
        limits = {name: each.assignment.limits for name, each in monitored.items()}
        machine = [
            Bound(
                " ".join(filter(None, ("the machine", each.shared.machine))),
                frozenset(each.devices),
                each.shared.limits.rates,
            )
            for each in self.groups
            if not each.shared.is_cache
        ]
        return tuple(
            ArraySnapshot(
                array,
                promise_of(array, limits, machine),
                [monitored[name] for name in array.disks if name in monitored],
            )
            for array in arrays_of(self._state.inventory)
            if not monitored.keys().isdisjoint(array.disks)
        )

    @cached_property
    def sampler(self) -> SamplerStats:
        """Ticks, gaps and errors of the sampler, and the health of other parts."""
        return self._state.sampler_stats.with_health(self._health)

    @cached_property
    def timestamp_s(self) -> float:
        """Wall-clock time of the last sample, in seconds since 1970; 0 before the first."""
        return 0.0 if self._state.clocks is None else self._state.clocks.realtime_s

    @cached_property
    def terms(self) -> TermsSnapshot:
        """What is known of the terms."""
        state, configuration = self._state, self._state.configuration
        as_of_s: dict[TermsSource, float] = {}
        expiry_s: dict[TermsSource, float] = {}
        for file in configuration.terms_files:
            for times_s, time_s in (
                (as_of_s, file.as_of_timestamp_s),
                (expiry_s, file.expiry_timestamp_s),
            ):
                if time_s is not None:
                    times_s[file.source] = min(times_s.get(file.source, math.inf), time_s)
        problems = [
            problem.message for file in configuration.terms_files for problem in file.problems
        ]
        problems += (
            [] if configuration.machine_problem is None else [configuration.machine_problem]
        )
        problems += [
            f"{device}: {disk_state.assignment.reason}"
            for device, disk_state in sorted(state.monitored.items())
            if disk_state.assignment.problem is not None
        ]
        return TermsSnapshot(
            as_of_s, expiry_s, state.unused, tuple(problems), self._terms_failures
        )


def disk_snapshot(state: State, device: str) -> DiskSnapshot | None:
    """Return the snapshot of one disk; None if it is not monitored."""
    disk_state = state.monitored.get(device)
    return None if disk_state is None else DiskSnapshot(disk_state, state)
