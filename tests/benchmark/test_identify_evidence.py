"""Distributions, from bins or from what little is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.benchmark.identify_evidence import RequestStats, count, shape_of, slower_than
from disksla.fio.result import LatencyBin, quantile_s
from support.simulated_media import bins_of

latencies = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=50)


def of(**known: object) -> RequestStats:
    return RequestStats(request_bytes=4096, iops=100.0, mean_s=0.01, **known)  # type: ignore[arg-type]


@given(latencies, st.floats(0, 1))
def test_a_quantile_is_reached_by_its_share_and_by_no_less(
    taken: list[float], share: float
) -> None:
    bins = bins_of(taken)
    found_s = quantile_s(bins, share)
    within = sum(one.requests for one in bins if one.seconds <= found_s)
    below = sum(one.requests for one in bins if one.seconds < found_s)
    assert within >= share * count(bins)
    assert below == 0 or below < share * count(bins)


@given(latencies, st.floats(1e-6, 10.0))
def test_slower_requests_are_those_that_took_as_long(taken: list[float], least_s: float) -> None:
    bins = bins_of(taken)
    assert slower_than(bins, least_s) == tuple(one for one in bins if one.seconds >= least_s)


def test_a_mean_alone_has_no_scatter() -> None:
    shape = shape_of(of())
    assert shape == (0.01, None, 0.01, 0.0)


def test_a_deviation_is_a_scatter() -> None:
    assert shape_of(of(deviation_s=0.004)).scatter_ratio == pytest.approx(0.54)


def test_one_request_quicker_than_a_platter_is_a_hit() -> None:
    assert shape_of(of(least_s=0.00005, requests=400)).hit_share == 1 / 400
    assert shape_of(of(least_s=0.00005)).hit_share == 1
    assert shape_of(of(least_s=0.005)).hit_share == 0


def test_hits_do_not_hide_what_the_rest_waits_for() -> None:
    shape = shape_of(
        of(
            bins=(
                LatencyBin(0.0001, 70),
                LatencyBin(0.008, 10),
                LatencyBin(0.01, 10),
                LatencyBin(0.012, 10),
            )
        )
    )
    assert shape.middle_s == 0.01
    assert shape.hit_share == pytest.approx(0.7)
    assert shape.quick_s == 0.0001


def test_a_few_slow_ones_do_not_stand_for_the_medium() -> None:
    assert shape_of(of(bins=(LatencyBin(0.0001, 90), LatencyBin(0.01, 10)))).middle_s == 0.0001
