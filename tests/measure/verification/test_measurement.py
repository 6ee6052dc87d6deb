import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.histogram import LatencyBin
from disksla.measure.fio.job import FioJob, Pattern
from disksla.measure.fio.result import DirectionResult, FioResult, total_result
from disksla.measure.verification.measurement import (
    SHOWN_SHARES,
    Measurement,
    at_the_same_time,
    measurement_of,
    percentiles_of,
)

NOTHING = DirectionResult(0, 0, 10.0, 0.0, 0.0, None)
SOMETHING = DirectionResult(
    10, 40960, 10.0, 1.0, 4096.0, 0.002, (LatencyBin(0.001, 9), LatencyBin(0.011, 1))
)


@given(st.lists(st.tuples(st.floats(1e-6, 10), st.integers(0, 1000)), min_size=1))
def test_percentile_covers_its_share(pairs: list[tuple[float, int]]) -> None:
    bins = tuple(LatencyBin(seconds, count) for seconds, count in sorted(pairs))
    total = sum(each.requests for each in bins)
    found = percentiles_of(bins)
    assert [each.share for each in found] == (list(SHOWN_SHARES) if total else [])
    for each in found:
        within = sum(one.requests for one in bins if one.seconds <= each.seconds)
        before = sum(one.requests for one in bins if one.seconds < each.seconds)
        assert within >= each.share * total > before or before < each.share * total


@pytest.mark.parametrize(("pattern", "requests"), [("randread", 10), ("write", 0)])
def test_measurement_has_the_direction_of_its_job(pattern: str, requests: int) -> None:
    job = FioJob(
        name="x",
        target="/dev/x",
        pattern=pattern,  # type: ignore[arg-type]
        request_bytes=4096,
        runtime_s=10.0,
        queue_depth=4,
        workers=8,
        rate_iops=5.0,
    )
    measurement = measurement_of(job, FioResult("fio-3.33", SOMETHING, NOTHING))
    assert measurement.measured.requests == requests
    assert (measurement.inflight, measurement.rate_iops, measurement.tool) == (32, 5.0, "fio-3.33")


@pytest.mark.parametrize(
    ("patterns", "together"),
    [
        (["randread", "randread"], "randread"),
        (["randread", "read"], "randread"),
        (["write", "randwrite"], "randwrite"),
        (["read", "write"], "rw"),
        (["rw", "read"], "rw"),
        (["randread", "write"], "randrw"),
    ],
)
def test_jobs_at_the_same_time_are_one_load(patterns: list[Pattern], together: Pattern) -> None:
    parts = [
        Measurement(
            name=name,
            tool="fio-3.33",
            pattern=pattern,
            request_bytes=4096,
            inflight=8,
            read=SOMETHING,
            rate_iops=rate,
            is_direct=is_direct,
        )
        for name, pattern, rate, is_direct in zip(
            "ab", patterns, (100.0, 50.0), (True, None), strict=True
        )
    ]
    load = at_the_same_time(parts)
    assert (load.name, load.pattern, load.inflight) == ("a + b", together, 16)
    assert (load.rate_iops, load.is_direct) == (150.0, None)
    assert load.read.requests == 2 * SOMETHING.requests
    part = msgspec.structs.replace(parts[1], rate_iops=None, is_direct=False, request_bytes=8192)
    other = at_the_same_time([parts[0], part])
    assert (other.rate_iops, other.is_direct) == (None, False)
    assert other.request_bytes == round(SOMETHING.bytes / SOMETHING.requests)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(1e-6, 10)), min_size=1, max_size=5))
def test_latency_of_all_is_the_mean_of_their_requests(parts: list[tuple[int, float]]) -> None:
    results = [
        DirectionResult(
            requests, 4096 * requests, 10.0, requests / 10, 409.6 * requests, latency_s
        )
        for requests, latency_s in parts
    ]
    total = total_result(results)
    requests = sum(each for each, _ in parts)
    assert total.requests == requests
    assert total.iops == pytest.approx(requests / 10)
    if requests:
        expected = sum(each * latency_s for each, latency_s in parts) / requests
        assert total.mean_latency_s == pytest.approx(expected)
    unknown = msgspec.structs.replace(SOMETHING, mean_latency_s=None)
    assert total_result([SOMETHING, unknown]).mean_latency_s is None
