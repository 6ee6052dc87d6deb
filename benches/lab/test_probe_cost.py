"""Computation of the cost of a probe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.histogram import LatencyBin
from lab.probe_cost import Pair, is_cheap, percentile_s, summary

bins = st.lists(
    st.tuples(st.floats(1e-6, 10), st.integers(1, 1000)),
    min_size=1,
    unique_by=lambda each: each[0],
).map(lambda pairs: [LatencyBin(seconds, requests) for seconds, requests in sorted(pairs)])


def test_percentile_is_interpolated_between_bins() -> None:
    two = [LatencyBin(0.001, 50), LatencyBin(0.002, 50)]
    assert percentile_s(two, 0.5) == pytest.approx(0.001)
    assert percentile_s(two, 0.75) == pytest.approx(0.0015)
    assert percentile_s(two, 1.0) == pytest.approx(0.002)


@given(bins, st.floats(0, 1), st.floats(0, 1))
def test_percentiles_increase_within_the_bins(
    latencies: list[LatencyBin], one: float, other: float
) -> None:
    low, high = (percentile_s(latencies, share) for share in sorted((one, other)))
    assert latencies[0].seconds <= low <= high * (1 + 1e-9)
    assert high <= latencies[-1].seconds * (1 + 1e-9)


def test_change_is_relative() -> None:
    assert Pair(0.010, 0.011, 0.01, 0.1).change == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("pairs", "cheap", "text"),
    [
        ([(1.0, 1.01), (1.01, 1.0), (0.99, 1.0)], True, "+1.00% (allowed: below 2%)"),
        ([(1.0, 1.03), (1.01, 1.05), (0.99, 1.02)], False, "+3.03% (allowed: below 2%)"),
        ([(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)], False, "the machine is too busy for a result"),
    ],
)
def test_summary_of_pairs(pairs: list[tuple[float, float]], cheap: bool, text: str) -> None:
    measured = [Pair(without, with_probe, 0.0095, 0.1) for without, with_probe in pairs]
    assert is_cheap(measured) is cheap
    assert text in summary(measured)


def test_probe_with_a_large_share_is_not_cheap() -> None:
    assert not is_cheap([Pair(1.0, 1.0, 0.01, 0.1)])
