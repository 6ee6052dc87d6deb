"""Snapshot of the state: what metrics, pages and commands show.

A snapshot is taken when somebody asks for it. The totals of idle disks, which are not updated at
every tick, are brought up to date in it.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from disksla.config import PROBE_KINDS, ProbeKind
from disksla.credits import CreditLevel
from disksla.disks import Disk
from disksla.histogram import Histogram
from disksla.limits import Assignment
from disksla.pipeline.disk_state import DiskState
from disksla.pipeline.peaks import highest
from disksla.pipeline.probe_results import ProbeTotals
from disksla.pipeline.sampler_stats import SOURCES
from disksla.pipeline.state import State
from disksla.pipeline.totals import VerdictTotals, sum_recent
from disksla.procfs import Counters
from disksla.system import SourceHealth
from disksla.verdict import Ceiling, Clocks, Interval, Verdict, load_of


class Traffic(msgspec.Struct, frozen=True):
    """Rates of one disk, in requests and bytes per second."""

    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


class DiskSnapshot(msgspec.Struct, frozen=True):
    """One watched disk."""

    disk: Disk
    assignment: Assignment
    counters: Counters | None
    """Since this daemon first saw the disk, unwrapped; None before the first sample."""
    inflight: int | None
    """Requests in flight at the last sample; None if the disk was not listed in it."""
    read_latency_s: Histogram
    write_latency_s: Histogram
    load: Histogram | None
    """Load of each window; None where nothing is promised."""
    peak: Traffic
    """Highest rates of any window within the last minute."""
    present: Traffic
    """Mean rates over the last second or so."""
    present_load: float | None
    """Load over the same time; None where nothing is promised."""
    verdict: Verdict | None = None
    """On the last window; None after a gap."""
    verdict_totals: VerdictTotals = VerdictTotals()
    """Seconds by verdict, and what throttling cost."""
    ceiling: Ceiling | None = None
    """The rate at which the disk was last seen held."""
    credits: tuple[CreditLevel, ...] = ()
    """Burst credits by resource; none where the terms have none."""
    probes: Mapping[ProbeKind, ProbeTotals] = {}
    """What probes came to, by kind; those that are configured are present from the start."""
    probe_intervals_s: Mapping[ProbeKind, float | None] = {}
    """Time between two turns of the kinds that are configured; None of crontab lines."""


class SamplerSnapshot(msgspec.Struct, frozen=True):
    """How well we sampled."""

    ticks: int
    missed_ticks: int
    lateness_s: Histogram
    gaps: Mapping[str, int]
    """Gaps by reason; every reason is present from the start."""
    errors: Mapping[str, int]
    """Errors by source; every source is present from the start."""
    collectors: Mapping[str, bool]
    """Whether each source of data could be read when it was last tried."""
    problems: Mapping[str, str] = {}
    """What is wrong with those that could not, where there are words for it."""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that leaves the house."""

    disks: tuple[DiskSnapshot, ...]
    sampler: SamplerSnapshot

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
    """Give everything known at the last sample, disks in the order of their names."""
    sampling = state.sampler_stats
    return Snapshot(
        disks=tuple(
            _disk_snapshot(watched, state) for _, watched in sorted(state.monitored.items())
        ),
        sampler=SamplerSnapshot(
            ticks=sampling.ticks,
            missed_ticks=sampling.missed_ticks,
            lateness_s=sampling.lateness_s,
            gaps=sampling.gaps,
            errors=sampling.errors,
            collectors={source: sampling.works(source) for source in SOURCES},
            problems=sampling.problems,
        ),
    )


def disk_snapshot(state: State, device: str) -> DiskSnapshot | None:
    """Give what is known of one disk; None if it is not watched."""
    watched = state.monitored.get(device)
    return None if watched is None else _disk_snapshot(watched, state)


def _disk_snapshot(watched: DiskState, state: State) -> DiskSnapshot:
    now_s = state.clocks.monotonic_s if state.clocks is not None else 0.0
    totals = watched.totals
    if watched.is_listed:
        totals = totals.settled(state.assessed, now_s)
    recent = sum_recent(totals.recent, now_s, state.settings.sampling.interval_s)
    peak = highest(totals.peaks, now_s)
    promise = watched.assignment.limits.promise_charges
    asleep = watched.is_listed and watched.disk.name not in state.active
    window_verdict = watched.window_verdict
    asked = state.settings.probes_of(watched.disk.name)
    return DiskSnapshot(
        disk=watched.disk,
        assignment=watched.assignment,
        counters=watched.counters,
        inflight=watched.inflight if watched.is_listed else None,
        read_latency_s=totals.read_latency.histogram,
        write_latency_s=totals.write_latency.histogram,
        load=totals.load if promise else None,
        peak=Traffic(
            peak.read_iops,
            peak.write_iops,
            peak.read_bytes_per_second,
            peak.written_bytes_per_second,
        ),
        verdict="idle"
        if asleep
        else window_verdict.verdict
        if window_verdict is not None
        else None,
        verdict_totals=msgspec.structs.replace(
            totals.verdict_totals, host=totals.verdict_totals.host.where_known(state.last_host)
        ),
        ceiling=watched.detector.ceiling,
        credits=_credits(watched, recent, state.clocks),
        probes=_probes(watched, asked),
        probe_intervals_s=asked,
        present=Traffic(
            recent.reads / recent.seconds,
            recent.writes / recent.seconds,
            recent.read_bytes / recent.seconds,
            recent.written_bytes / recent.seconds,
        ),
        present_load=load_of(recent, promise),
    )


def _credits(
    watched: DiskState, recent: Interval, clocks: Clocks | None
) -> tuple[CreditLevel, ...]:
    account = watched.credits_at(clocks.boottime_s) if clocks is not None else None
    return account.levels(watched.assignment.limits, recent) if account is not None else ()


def _probes(watched: DiskState, asked: Collection[ProbeKind]) -> dict[ProbeKind, ProbeTotals]:
    return {
        kind: watched.probes.get(kind, ProbeTotals())
        for kind in PROBE_KINDS
        if kind in asked or (kind in watched.probes and watched.probes[kind].is_used)
    }
