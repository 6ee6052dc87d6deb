"""The jobs of identify: read-only and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.benchmark.identify_evidence import (
    MAX_BYTES_PER_SECOND,
    Evidence,
    identify_jobs,
    request_stats,
)
from disksla.fio.job import fio_arguments
from disksla.fio.result import DirectionResult, FioResult, LatencyBin
from disksla.units import GIB, TIB

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
    assert (found.iops, found.mean_s, found.min_s, found.bins) == (100.0, 0.01, 0.004, bins)


def test_minimum_is_unknown_without_bins() -> None:
    job = next(identify_jobs("/dev/vdb", TIB, 3.0))
    read = DirectionResult(300, 300 * 4096, 3.0, 100.0, 409600.0, 0.01)
    found = request_stats(job, FioResult("fio-3.33", read, NO_REQUESTS))
    assert found is not None
    assert found.min_s is None


def test_no_evidence_if_no_request_completed() -> None:
    job = next(identify_jobs("/dev/vdb", TIB, 3.0))
    assert request_stats(job, FioResult("fio-3.33", NO_REQUESTS, NO_REQUESTS)) is None
