import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.fio.job import FioJob
from disksla.fio.result import DirectionResult, FioResult, LatencyBin
from disksla.verification.measurement import SHOWN_SHARES, measurement_of, percentiles_of

NOTHING = DirectionResult(0, 0, 10.0, 0.0, 0.0, None)
SOMETHING = DirectionResult(
    10, 40960, 10.0, 1.0, 4096.0, 0.002, (LatencyBin(0.001, 9), LatencyBin(0.011, 1))
)


def test_percentiles_from_bins() -> None:
    seconds = [each.seconds for each in percentiles_of(SOMETHING.bins)]
    assert seconds == [0.001, 0.001, 0.011, 0.011]
    assert percentiles_of(()) == ()


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
