"""Distributions of latencies, and the jobs that measure them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.base.histogram import LatencyBin
from disksla.base.units import GIB, TIB
from disksla.measure.benchmark.identify_evidence import (
    MAX_BYTES_PER_SECOND,
    Evidence,
    RequestStats,
    identify_jobs,
    request_stats,
    shape_of,
    slower_than,
)
from disksla.measure.fio.job import fio_arguments
from disksla.measure.fio.result import DirectionResult, FioResult
from support.simulated_media import bins_of

latencies = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=50)


def stats(**known: object) -> RequestStats:
    return RequestStats(request_bytes=4096, iops=100.0, mean_s=0.01, **known)  # type: ignore[arg-type]


@given(latencies, st.floats(1e-6, 10.0))
def test_slower_than_selects_bins(latencies_s: list[float], min_s: float) -> None:
    bins = bins_of(latencies_s)
    assert slower_than(bins, min_s) == tuple(one for one in bins if one.seconds >= min_s)


def test_hits_do_not_hide_the_seeks_of_the_others() -> None:
    seeks = (LatencyBin(0.008, 10), LatencyBin(0.01, 10), LatencyBin(0.012, 10))
    shape = shape_of(stats(bins=(LatencyBin(0.0001, 70), *seeks)))
    assert (shape.typical_s, shape.lower_quartile_s) == (0.01, 0.0001)
    assert shape.hit_share == pytest.approx(0.7)
    few = (LatencyBin(0.0001, 90), LatencyBin(0.01, 10))
    assert shape_of(stats(bins=few)).typical_s == 0.0001


NO_REQUESTS = DirectionResult(0, 0, 3.0, 0.0, 0.0, None)


@given(st.integers(GIB, 64 * TIB), st.floats(0.1, 10))
def test_jobs_are_read_only_and_bounded(size_bytes: int, runtime_s: float) -> None:
    jobs = list(identify_jobs("/dev/vdb", size_bytes, runtime_s))
    assert {job.name for job in jobs} <= set(Evidence.__struct_fields__)
    for job in jobs:
        assert "--readonly" in fio_arguments(job)
        assert not job.writes
        assert job.runtime_s == runtime_s
        assert 0 < (job.rate_iops or 0) * job.request_bytes <= MAX_BYTES_PER_SECOND
        assert (job.span_bytes or 0) <= size_bytes


def test_near_is_a_part_of_a_large_disk() -> None:
    spans = {job.name: job.span_bytes for job in identify_jobs("/dev/vdb", TIB, 3.0)}
    assert spans["near"] == TIB // 64
    assert spans["random"] == TIB
    assert "near" not in {job.name for job in identify_jobs("/dev/vdb", 8 * GIB, 3.0)}
    assert "near" in {job.name for job in identify_jobs("/dev/vdb", 16 * GIB, 3.0)}


def test_result_becomes_evidence() -> None:
    job = next(identify_jobs("/dev/vdb", TIB, 3.0))
    bins = (LatencyBin(0.004, 100), LatencyBin(0.012, 200))
    read = DirectionResult(300, 300 * 4096, 3.0, 100.0, 409600.0, 0.01, bins)
    found = request_stats(job, FioResult("fio-3.33", read, NO_REQUESTS))
    assert found is not None
    assert (found.request_bytes, found.queue_depth, found.requests) == (4096, 1, 300)
    assert (found.iops, found.mean_s, found.bins) == (100.0, 0.01, bins)
    unbinned = replace(read, bins=())
    without = request_stats(job, FioResult("fio-3.33", unbinned, NO_REQUESTS))
    assert without == replace(found, bins=())
    assert request_stats(job, FioResult("fio-3.33", NO_REQUESTS, NO_REQUESTS)) is None
