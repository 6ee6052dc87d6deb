"""The plan of a probe: its rate, its cost, and its offset."""

import math
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.histogram import LatencyBin
from disksla.base.units import MIB
from disksla.measure.fio.result import DirectionResult, FioResult
from disksla.measure.probes.probe_plan import (
    FILL_BYTES_PER_SECOND,
    FILL_REQUEST_BYTES,
    GRACE_S,
    MOST_SHARE,
    failed_result,
    measured_result,
    offset_s,
    plan_probe,
    skipped_result,
)
from disksla.measure.probes.probe_scheduler import MAX_JITTER_S, times_of
from disksla.promise.catalogue.cost_model import load_ratio
from disksla.promise.catalogue.limits import NO_LIMITS, Limits
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    SumTerms,
    TimeSharedTerms,
    custom_limits,
)
from disksla.promise.configuration.settings import (
    PROBE_KINDS,
    PROBE_REQUEST_BYTES,
    ProbeEntry,
    ProbeKind,
    ProbeTarget,
)
from disksla.state.pipeline.probe_results import Skip, quantile_s

READS = ProbeEntry(kind="read-latency")
WRITES = ProbeEntry(kind="write-latency")

rates = st.none() | st.floats(1, 1e6)
terms = st.one_of(
    st.builds(SumTerms, iops=st.floats(1, 1e6), bytes_per_second=st.none() | st.floats(1e5, 1e9)),
    *(
        st.builds(kind, read_iops=st.floats(1, 1e6), write_iops=rates)
        for kind in (SeparateTerms, TimeSharedTerms)
    ),
)
entries = st.builds(
    ProbeEntry,
    kind=st.sampled_from(PROBE_KINDS),
    rate_iops=st.integers(1, 400).map(float),
    runtime_s=st.floats(1, 60),
)


def test_job_has_one_request_in_flight_and_a_grace_time() -> None:
    plan = plan_probe(READS, "vda", NO_LIMITS)
    job = plan.job("/dev/vda")
    assert (job.pattern, job.request_bytes) == ("randread", 4096)
    assert (job.queue_depth, job.workers) == (1, 1)
    assert (job.target, job.rate_iops, job.runtime_s) == ("/dev/vda", 20.0, 5.0)
    assert plan_probe(WRITES, "vda", NO_LIMITS).job("/srv/f").pattern == "randwrite"
    assert plan.limit_s == 5.0 + GRACE_S
    assert plan.most_bytes == 101 * PROBE_REQUEST_BYTES


@pytest.mark.parametrize(
    ("iops", "rate_iops", "lowered"),
    [
        (None, 20, False),
        (2021, 20, False),
        (2019, 19, True),
        (300, 2, True),
        (121, 1, True),
        (119, 0, True),
        (1, 0, True),
    ],
)
def test_low_limit_lowers_the_rate(iops: float | None, rate_iops: int, lowered: bool) -> None:
    limits = NO_LIMITS if iops is None else custom_limits(SumTerms(iops=iops))
    plan = plan_probe(READS, "vda", limits)
    assert plan.rate_iops == rate_iops
    assert plan.is_lowered == lowered
    assert ("lowered from 20 IOPS" in plan.describe()) == lowered
    assert plan.limit_share == (None if iops is None else pytest.approx(rate_iops / iops))


def test_reads_and_writes_have_their_own_limits() -> None:
    limits = custom_limits(SeparateTerms(read_iops=10_000.0, write_iops=200.0))
    assert plan_probe(READS, "vda", limits).rate_iops == 20
    assert plan_probe(WRITES, "vda", limits).rate_iops == 1
    reads_only = custom_limits(SeparateTerms(read_iops=100.0))
    assert plan_probe(WRITES, "vda", reads_only).limit_share is None


def test_scratch_file_counts_as_transferred() -> None:
    entry = ProbeEntry(kind="read-latency", target="file", file_size_bytes=65536)
    plan = plan_probe(entry, "vda", NO_LIMITS)
    assert plan.file_bytes == 65536
    assert plan.most_bytes == 65536 + 101 * PROBE_REQUEST_BYTES
    assert plan.fill_bytes_per_second == FILL_BYTES_PER_SECOND


@given(entries, terms.map(custom_limits))
def test_probe_never_uses_more_than_1_percent(entry: ProbeEntry, limits: Limits) -> None:
    plan = plan_probe(entry, "vda", limits)
    reads, writes = (plan.rate_iops, 0) if entry.kind == "read-latency" else (0, plan.rate_iops)
    load = load_ratio(
        limits.promise_charges,
        1.0,
        reads,
        writes,
        reads * PROBE_REQUEST_BYTES,
        writes * PROBE_REQUEST_BYTES,
    )
    assert load is not None
    assert load < MOST_SHARE
    assert load * (1 + 1 / (plan.rate_iops * entry.runtime_s or 1)) <= MOST_SHARE * (1 + 1e-6)
    assert 0 <= plan.rate_iops <= entry.rate_iops
    assert plan.limit_share is None or plan.limit_share == pytest.approx(load)
    assert plan.most_bytes >= plan.rate_iops * entry.runtime_s * PROBE_REQUEST_BYTES
    fill = plan.fill_bytes_per_second  # of the scratch file
    load = load_ratio(limits.promise_charges, 1.0, 0, fill / FILL_REQUEST_BYTES, 0, fill)
    assert load is not None
    assert load <= MOST_SHARE * (1 + 1e-6)


@pytest.mark.parametrize("kind", PROBE_KINDS)
def test_offsets_of_a_fleet_are_constant_and_evenly_distributed(kind: ProbeKind) -> None:
    entry = ProbeEntry(kind=kind)
    offsets, again = (
        [offset_s(f"machine {number}", "vda\udcff", entry) for number in range(2000)]
        for _ in range(2)
    )
    tenths = [math.floor(offset / entry.spread_s * 10) for offset in offsets]
    assert offsets == again
    assert mean(offsets) == pytest.approx(entry.spread_s / 2, rel=0.05)
    assert all(140 < tenths.count(tenth) < 260 for tenth in range(10))
    assert len({offset_s("m", disk, each) for disk in "ab" for each in (READS, WRITES)}) == 4


@pytest.mark.parametrize(
    ("settings", "every_s", "cron", "jitter_s"),
    [
        ({}, 600.0, None, MAX_JITTER_S),
        ({"every_s": 20.0, "splay_s": 10.0}, 20.0, None, 0.5),
        ({"cron": "0 4 * * *"}, 0.0, "0 4 * * *", MAX_JITTER_S),
    ],
)
def test_times_of(
    settings: dict[str, ProbeTarget], every_s: float, cron: str | None, jitter_s: float
) -> None:
    times = times_of(ProbeEntry(kind="read-latency", **settings), 12.5)  # type: ignore[arg-type]
    assert (times.every_s, times.cron, times.offset_s) == (every_s, cron, 12.5)
    assert times.jitter_s == pytest.approx(jitter_s)


BINS = (LatencyBin(0.001, 90), LatencyBin(0.002, 9), LatencyBin(0.5, 1))
DONE = DirectionResult(100, 409_600, 5.0, 20.0, 81_920.0, 0.0066, BINS)
NONE = DirectionResult(0, 0, 5.0, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("read-latency", FioResult("3.33", DONE, NONE)),
        ("write-latency", FioResult("3.33", NONE, DONE)),
    ],
)
def test_result_is_that_of_the_direction(kind: ProbeKind, result: FioResult) -> None:
    plan = plan_probe(ProbeEntry(kind=kind), "vda", NO_LIMITS)
    probe = measured_result(plan, result, 1.7e9, 5.4)
    assert probe.is_success
    assert (probe.device, probe.kind) == ("vda", kind)
    assert (probe.target_iops, probe.achieved_iops) == (20.0, 20.0)
    assert probe.requests == 100
    assert probe.transferred_bytes == probe.spent_bytes == 409_600 + plan.file_bytes
    assert plan.file_bytes == (0 if kind == "read-latency" else MIB)
    assert probe.bins == BINS


def test_run_that_failed_or_was_skipped() -> None:
    plan = plan_probe(READS, "vda", NO_LIMITS)
    nothing = measured_result(plan, FioResult("3.33", NONE, DONE), 1.7e9, 5.4)
    assert (nothing.failure, nothing.message) == ("error", "fio completed no request")
    failed = failed_result(plan, "timeout", "ended after 15 s", 1.7e9, 15.0)
    assert (failed.is_success, failed.transferred_bytes) == (False, 0)
    assert failed.spent_bytes == plan.most_bytes, "it counts all its bytes"
    skipped = skipped_result(plan, Skip("busy", "the load is 85%"), 1.7e9)
    assert not skipped.is_success
    assert (skipped.skipped, skipped.message, skipped.spent_bytes) == (
        *("busy", "the load is 85%"),
        0,
    )


def test_quantile_of_nothing_is_none() -> None:
    assert quantile_s((), 0.5) is None
    assert quantile_s((LatencyBin(0.1, 0),), 0.5) is None
    assert quantile_s(BINS, 0.95) == 0.002
