"""Distributions of latencies, from bins or from mean and deviation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.benchmark.identify_evidence import RequestStats, count, shape_of, slower_than
from disksla.fio.result import LatencyBin, quantile_s
from support.simulated_media import bins_of

latencies = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=50)


def stats(**known: object) -> RequestStats:
    return RequestStats(request_bytes=4096, iops=100.0, mean_s=0.01, **known)  # type: ignore[arg-type]


@given(latencies, st.floats(0, 1))
def test_quantile_divides_the_requests(latencies_s: list[float], share: float) -> None:
    bins = bins_of(latencies_s)
    found_s = quantile_s(bins, share)
    within = sum(one.requests for one in bins if one.seconds <= found_s)
    below = sum(one.requests for one in bins if one.seconds < found_s)
    assert within >= share * count(bins)
    assert below == 0 or below < share * count(bins)


@given(latencies, st.floats(1e-6, 10.0))
def test_slower_than_selects_bins(latencies_s: list[float], min_s: float) -> None:
    bins = bins_of(latencies_s)
    assert slower_than(bins, min_s) == tuple(one for one in bins if one.seconds >= min_s)


def test_mean_alone_has_no_scatter() -> None:
    shape = shape_of(stats())
    assert shape == (0.01, None, 0.01, 0.0)


def test_deviation_gives_a_scatter() -> None:
    assert shape_of(stats(deviation_s=0.004)).scatter_ratio == pytest.approx(0.54)


def test_request_faster_than_a_rotating_disk_is_a_hit() -> None:
    assert shape_of(stats(min_s=0.00005, requests=400)).hit_share == 1 / 400
    assert shape_of(stats(min_s=0.00005)).hit_share == 1
    assert shape_of(stats(min_s=0.005)).hit_share == 0


def test_hits_do_not_hide_the_seeks_of_the_others() -> None:
    shape = shape_of(
        stats(
            bins=(
                LatencyBin(0.0001, 70),
                LatencyBin(0.008, 10),
                LatencyBin(0.01, 10),
                LatencyBin(0.012, 10),
            )
        )
    )
    assert shape.typical_s == 0.01
    assert shape.hit_share == pytest.approx(0.7)
    assert shape.lower_quartile_s == 0.0001


def test_a_few_slow_requests_do_not_decide() -> None:
    assert shape_of(stats(bins=(LatencyBin(0.0001, 90), LatencyBin(0.01, 10)))).typical_s == 0.0001
