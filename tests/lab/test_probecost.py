"""What is reckoned of the cost of probes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.fio.result import LatencyBin
from lab.probecost import Pair, is_cheap, percentile_s, summary

bins = st.lists(
    st.tuples(st.floats(1e-6, 10), st.integers(1, 1000)),
    min_size=1,
    unique_by=lambda each: each[0],
).map(lambda pairs: [LatencyBin(seconds, requests) for seconds, requests in sorted(pairs)])


def test_a_percentile_lies_between_bins() -> None:
    two = [LatencyBin(0.001, 50), LatencyBin(0.002, 50)]
    assert percentile_s(two, 0.5) == pytest.approx(0.001)
    assert percentile_s(two, 0.75) == pytest.approx(0.0015)
    assert percentile_s(two, 1.0) == pytest.approx(0.002)


@given(bins, st.floats(0, 1), st.floats(0, 1))
def test_percentiles_rise_and_stay_within_what_was_seen(
    seen: list[LatencyBin], one: float, other: float
) -> None:
    low, high = (percentile_s(seen, share) for share in sorted((one, other)))
    assert seen[0].seconds <= low <= high * (1 + 1e-9)
    assert high <= seen[-1].seconds * (1 + 1e-9)


def test_a_change_is_told_as_a_share() -> None:
    assert Pair(0.010, 0.011, 0.01, 0.1).change == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("pairs", "cheap", "words"),
    [
        ([(1.0, 1.01), (1.01, 1.0), (0.99, 1.0)], True, "+1.00% (below 2%)"),
        ([(1.0, 1.03), (1.01, 1.05), (0.99, 1.02)], False, "+3.03% (below 2%)"),
        ([(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)], False, "the machine is too busy to tell"),
    ],
)
def test_what_pairs_come_to(pairs: list[tuple[float, float]], cheap: bool, words: str) -> None:
    measured = [Pair(without, with_probe, 0.0095, 0.1) for without, with_probe in pairs]
    assert is_cheap(measured) is cheap
    assert words in summary(measured)


def test_a_probe_that_uses_too_much_is_not_cheap() -> None:
    assert not is_cheap([Pair(1.0, 1.0, 0.01, 0.1)])
