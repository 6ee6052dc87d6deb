"""Example snapshots of disks, and strategies for arbitrary snapshots."""

import math
from copy import copy
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from disksla.base.histogram import Histogram, LatencyBin
from disksla.kernel.consumers import NO_CONSUMERS
from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs.diskstats import Counters
from disksla.kernel.procfs.iowait import HostWait
from disksla.promise.catalogue.limits import (
    NO_LIMITS,
    Assignment,
    Bucket,
    Budgets,
    Burst,
    Limits,
    Rates,
    build_limits,
)
from disksla.promise.catalogue.machine import SharedLimits
from disksla.promise.configuration.settings import PROBE_KINDS, ProbeKind
from disksla.serve.metrics.self_metrics import BuildInfo
from disksla.state.pipeline.probe_results import FAILURE_REASONS, ProbeResult, ProbeTotals
from disksla.state.pipeline.sampler_stats import SamplerStats
from disksla.state.pipeline.slow import SlowTotals
from disksla.state.pipeline.snapshot import DiskSnapshot, GroupSnapshot, Snapshot, TermsSnapshot
from disksla.state.pipeline.totals import (
    LOAD_BOUNDS_RATIO,
    DiskTotals,
    LatencyMeter,
    Traffic,
    VerdictTotals,
)
from disksla.verdict.credits.account import CreditLevel
from disksla.verdict.throttling.throttle import Ceiling, Throttle
from support.any_records import Kinds, records

LATENCY_BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
)  # fmt: skip
LATENESS_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)

ABOUT = BuildInfo(
    version="0.1.0",
    revision="0123456789ab",
    python_version="3.11.7",
    kernel_release="6.1.0-26-amd64",
    reload_successful=True,
    reload_success_timestamp_s=1764000000.0,
)
SEPARATE_LIMITS = Limits(
    rates=Rates(10000.0, 5000.0, 440e6, 220e6),
    budget=Budgets("separate", "separate"),
    latency_s=0.001,
    latency_kind="guaranteed",
)
BURST_LIMITS = Limits(
    rates=Rates(300.0, 300.0, 30e6, 30e6),
    budget=Budgets("time_shared", "time_shared"),
    latency_s=0.02,
    latency_kind="indicative",
    burst=Burst(
        Rates(2000.0, 2000.0, 60e6, 60e6), (Bucket("iops", 8000.0, 300.0, 300.0, 2000.0),)
    ),
)
IOPS_CREDITS = CreditLevel("iops", 8000.0, 1250.5, 4000.0, 2500.0, 1.5)
BYTE_CREDITS = CreditLevel("bytes", 64e6, 0.0, 64e6, 32e6, math.inf)
TOTALS = Counters(
    reads=1_234_567, reads_merged=12, read_sectors=98_765_432, read_ms=456_789,
    writes=7_654_321, writes_merged=3456, written_sectors=612_345_678, write_ms=9_876_543,
    busy_ms=1_000_000, queue_ms=10_333_332,
    discards=42, discards_merged=0, discarded_sectors=88_080_384, discard_ms=17,
    flushes=5150, flush_ms=20_601,
)  # fmt: skip


Shown = TypeVar("Shown")


class KnownDisk(DiskSnapshot):
    """A disk of which everything that is shown is given."""

    def __init__(self, **known: object) -> None:
        vars(self).update(_UNKNOWN | known)


class KnownGroup(GroupSnapshot):
    """A group of which everything that is shown is given."""

    def __init__(self, **known: object) -> None:
        vars(self).update(known)


class KnownSnapshot(Snapshot):
    """A snapshot of which everything that is shown is given."""

    def __init__(
        self,
        disks: tuple[DiskSnapshot, ...],
        sampler: SamplerStats,
        groups: tuple[GroupSnapshot, ...] = (),
    ) -> None:
        vars(self).update(disks=disks, sampler=sampler, groups=groups, arrays=())
        vars(self).update(terms=TermsSnapshot(), timestamp_s=0.0, profile="default")


def changed(shown: Shown, **changes: object) -> Shown:
    """Return a snapshot, or a record in it, with other values."""
    if isinstance(shown, msgspec.Struct):
        return msgspec.structs.replace(shown, **changes)
    other = copy(shown)
    vars(other).update(changes)
    return other


_UNKNOWN: dict[str, object] = {
    **dict.fromkeys(("counters", "inflight", "load", "present_load", "verdict", "throttle")),
    **dict.fromkeys(("ceiling", "data_writes", "machine_type", "agreement", "provider", "mount")),
    "why_no_consumers": None,
    "provider_is_current": False,
    "totals": DiskTotals(),
    "verdict_totals": VerdictTotals(),
    "slow": SlowTotals(),
    "usual_latency_s": {},
    "peak": Traffic(),
    "present": Traffic(),
    "credits": (),
    "groups": (),
    "probes": {},
    "probe_intervals_s": {},
    "consumers": NO_CONSUMERS,
}


def histogram(bounds: tuple[float, ...], seed: int = 7) -> Histogram:
    """Return a histogram with observations in every bucket."""
    filled = Histogram.empty(bounds)
    for index, value in enumerate((*bounds, bounds[-1] * 2)):
        filled = filled.observe(value, 1 + seed * (index + 3) % 97)
    return filled


def disk_view(
    name: str = "vdb",
    limits: Limits = SEPARATE_LIMITS,
    totals: Counters | None = TOTALS,
    load_now: float = 0.47,
    hostile: str = "",
) -> DiskSnapshot:
    """Return a busy disk with limits; `hostile` is added to every text that a device provides."""
    return KnownDisk(
        disk=Disk(
            name=name,
            major=252,
            minor=16,
            size_bytes=500 * 1024**3,
            serial=f"6ea73b81-555e-4a74-9{hostile}",
            model=f"Virtual Disk{hostile}",
            rotational=False,
            mount_points=(f"/var/lib/postgresql{hostile}",),
            file_system_mounts=(f"/var/lib/postgresql{hostile}",),
            holders=(f"dm-0{hostile}",),
        ),
        assignment=Assignment(
            "vk.high-iops", "vk", "the configuration says so", 500 * 1024**3, limits
        ),
        counters=totals,
        inflight=5,
        totals=DiskTotals(
            read_latency=LatencyMeter(histogram(LATENCY_BOUNDS_S, 3)),
            write_latency=LatencyMeter(histogram(LATENCY_BOUNDS_S, 5)),
        ),
        load=histogram(LOAD_BOUNDS_RATIO),
        peak=Traffic(9800.0, 4990.0, 401.4e6, 204.4e6),
        present=Traffic(4010.0, 1210.0, 164.3e6, 49.6e6),
        present_load=load_now,
        verdict="throttled",
        verdict_totals=VerdictTotals(
            seconds=(1800.5, 3600.0, 12.0, 42.3, 0.0, 1.5),
            throttled_s=(40.0, 2.3, 0.0, 0.0, 0.0),
            wait_s=1353.6,
            host=HostWait(31.5, 29.0, 27.25),
        ),
        ceiling=Ceiling(Throttle("base", "iops"), 300.0, 300.0 * 4096),
        credits=(IOPS_CREDITS,),
    )


def group_view() -> GroupSnapshot:
    """Return two disks of an AWS instance at the limit of the instance, with burst credits."""
    limits = build_limits(
        Rates(3600.0, 3600.0, 81.25e6, 81.25e6),
        "sum",
        burst=Burst(
            Rates(18_750.0, 18_750.0, 593.75e6, 593.75e6),
            (Bucket("iops", 8000.0, 3600, 3600, 18_750.0),),
        ),
    )
    return KnownGroup(
        shared=SharedLimits("ebs", "all EBS volumes of the instance together", "m5.large", limits),
        devices=("vdb", "vdc"),
        totals=DiskTotals(load=histogram(LOAD_BOUNDS_RATIO)),
        present_load=0.98,
        throttled_s={"iops": 40.0, "bandwidth": 2.0},
        credits=(IOPS_CREDITS,),
    )


def probed_disk_view() -> DiskSnapshot:
    """Return a disk with a successful read probe and a skipped write probe."""
    measured = ProbeResult(
        device="vdb",
        kind="read-latency",
        timestamp_s=1764000000.0,
        target_iops=20.0,
        duration_s=5.375,
        requests=100,
        transferred_bytes=409_600,
        achieved_iops=19.9,
        bins=(LatencyBin(0.0007, 99), LatencyBin(0.12, 1)),
    )
    skipped = ProbeResult(
        device="vdb", kind="write-latency", timestamp_s=1764000000.0, skipped="busy"
    )
    probes: dict[ProbeKind, ProbeTotals] = {
        "read-latency": ProbeTotals(last_attempt_s=1763900000.0).plus(measured),
        "write-latency": ProbeTotals(last_attempt_s=1763900000.0).plus(skipped),
    }
    return changed(
        disk_view(),
        probes=probes,
        probe_intervals_s={"read-latency": 600.0, "write-latency": 3600.0},
    )


def unknown_disk_view(name: str = "sda") -> DiskSnapshot:
    """Return a disk of which only name, number and size are known."""
    return KnownDisk(
        disk=Disk(name, 8, 0, 20 * 1024**3),
        assignment=Assignment(
            "generic.ssd", "generic", "no rule matched", 20 * 1024**3, NO_LIMITS
        ),
    )


SAMPLER = SamplerStats(
    ticks=864_000,
    missed_ticks=3,
    lateness_s=histogram(LATENESS_BOUNDS_S),
    gaps={"late": 3, "reset": 0, "swapped": 1},
    errors={"diskstats": 0, "inflight": 2},
    problems={"inflight:vdb": "Input/output error"},
)


def view(*disks: DiskSnapshot, groups: tuple[GroupSnapshot, ...] = ()) -> Snapshot:
    """Return a snapshot of `disks` by a sampler that had gaps and errors."""
    return KnownSnapshot(disks, SAMPLER, groups)


# Arbitrary snapshots. Texts are any that a device or a file system can have, even surrogates.
nasty_text = st.one_of(
    st.text(max_size=12),
    st.text(alphabet=st.sampled_from("\"\\\n\r\t{}=,#<>&'é\U0001f4be\ud800\udcff"), max_size=12),
)
numbers = st.floats(min_value=0, max_value=1e15)
_counts = st.integers(min_value=0, max_value=2**53)
KINDS: Kinds = {float: numbers, str: nasty_text, int: _counts}
_counters: st.SearchStrategy[Counters] = st.builds(
    Counters, *[st.none() | _counts for _ in Counters._fields]
)


def histograms(bounds: tuple[float, ...]) -> st.SearchStrategy[Histogram]:
    """Return a strategy for histograms with these bounds."""
    counts = st.lists(
        st.integers(min_value=0, max_value=2**40),
        min_size=len(bounds) + 1,
        max_size=len(bounds) + 1,
    )
    return st.builds(Histogram, st.just(bounds), counts.map(tuple), numbers)


_limits = records(
    Limits,
    KINDS,
    "rates latency_s latency_kind",
    budget=st.none() | st.builds(Budgets),
    burst=st.none() | st.builds(Burst, records(Rates, KINDS), st.just(())),
)
_credits = st.builds(
    CreditLevel,
    st.sampled_from(["iops", "bytes", "service_seconds"]),
    *[numbers] * 4,
    exhaustion_s=numbers | st.just(math.inf),
)
_disks = records(
    Disk,
    KINDS,
    "name size_bytes serial wwn model rotational mount_points file_system_mounts holders",
    major=st.just(8),
    minor=st.just(0),
)
_probe_results = records(
    ProbeResult,
    KINDS,
    "kind timestamp_s skipped duration_s requests achieved_iops",
    failure=st.none() | st.sampled_from(FAILURE_REASONS),
    device=st.just("vdb"),
    bins=st.lists(st.builds(LatencyBin, st.floats(0, 100), st.integers(1, 1000)), max_size=3).map(
        tuple
    ),
)
_probe_totals = st.just(ProbeTotals()) | _probe_results.map(ProbeTotals().plus)
_latencies = st.builds(LatencyMeter, histograms(LATENCY_BOUNDS_S))
disk_views = st.builds(
    KnownDisk,
    disk=_disks,
    assignment=st.builds(Assignment, nasty_text, nasty_text, nasty_text, _counts, _limits),
    counters=st.none() | _counters,
    inflight=st.none() | _counts,
    totals=st.builds(DiskTotals, read_latency=_latencies, write_latency=_latencies),
    load=st.none() | histograms(LOAD_BOUNDS_RATIO),
    peak=records(Traffic, KINDS),
    present=records(Traffic, KINDS),
    present_load=st.none() | numbers,
    credits=st.lists(_credits, max_size=3, unique_by=lambda level: level.resource).map(tuple),
    probes=st.dictionaries(st.sampled_from(PROBE_KINDS), _probe_totals),
)
views = st.builds(
    KnownSnapshot,
    st.lists(disk_views, max_size=3, unique_by=lambda one: one.disk.name).map(tuple),
    records(
        SamplerStats,
        KINDS,
        "ticks missed_ticks gaps errors parts",
        lateness_s=histograms(LATENESS_BOUNDS_S),
    ),
)
