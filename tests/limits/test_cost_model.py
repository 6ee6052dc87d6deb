"""What requests cost, and the load they make."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.cost_model import (
    Additive,
    Charge,
    DirectionLimits,
    chunked,
    enforced_cost,
    load_ratio,
    published_cost,
    separate_charges,
    service_charges,
    service_constants,
    shared_charges,
)
from disksla.units import KIB, MIB

LAW = Additive(small_bytes=4 * KIB, large_bytes=4 * MIB)
IOPS = st.integers(1, 100_000)
ALLOWANCES = st.builds(DirectionLimits, st.none() | IOPS, st.none() | st.integers(4 * KIB, 2**32))
COUNTS = st.integers(0, 10**6)
BYTES = st.integers(0, 2**40)
WINDOWS = st.tuples(COUNTS, COUNTS, BYTES, BYTES)


@st.composite
def all_charges(draw: st.DrawFn) -> tuple[Charge, ...]:
    """Give the charges of any law for any limits."""
    read, write = draw(ALLOWANCES), draw(ALLOWANCES)
    separate, shared = separate_charges(read, write), shared_charges(read, write)
    published = service_charges(published_cost(read), published_cost(write))
    enforced = service_charges(enforced_cost(read, LAW), enforced_cost(write, LAW))
    chunks = draw(st.integers(1, 2**20))
    laws = [separate, shared, published, enforced, chunked(separate, chunks)]
    return draw(st.sampled_from([*laws, chunked(shared, chunks)]))


@given(all_charges(), WINDOWS, WINDOWS)
def test_more_never_costs_less(
    charges: tuple[Charge, ...], window: tuple[int, ...], more: tuple[int, ...]
) -> None:
    grown = tuple(map(sum, zip(window, more, strict=True)))
    before, after = load_ratio(charges, 0.1, *window), load_ratio(charges, 0.1, *grown)
    if before is None or after is None:
        assert charges == ()
    else:
        assert before <= after


@given(all_charges(), st.integers(2, 1000), BYTES)
def test_merging_requests_is_never_dearer(
    charges: tuple[Charge, ...], requests: int, size_bytes: int
) -> None:
    apart = load_ratio(charges, 1.0, requests, requests, size_bytes, size_bytes)
    merged = load_ratio(charges, 1.0, requests - 1, requests - 1, size_bytes, size_bytes)
    assert (merged or 0.0) <= (apart or 0.0)


def test_without_charges_there_is_no_load() -> None:
    assert load_ratio((), 0.1, 10, 10, 4096, 4096) is None


def test_an_idle_window_has_no_load() -> None:
    assert (
        load_ratio(
            separate_charges(DirectionLimits(300, None), DirectionLimits(300, None)), 1, 0, 0, 0, 0
        )
        == 0
    )


@given(IOPS, IOPS, st.floats(0.001, 100))
def test_a_window_at_a_limit_has_load_one(read_iops: int, write_iops: int, seconds: float) -> None:
    read, write = DirectionLimits(read_iops, 1e9), DirectionLimits(write_iops, 1e9)
    for charges in (separate_charges(read, write), shared_charges(read, write)):
        at_limit = load_ratio(charges, seconds, read_iops * seconds, 0, 0, 0)
        assert at_limit == pytest.approx(1.0)
        assert load_ratio(charges, seconds, 0, 0, 0, 1e9 * seconds) == pytest.approx(1.0)


def test_separate_limits_hold_one_at_a_time_and_shared_ones_together() -> None:
    read, write = DirectionLimits(1000, None), DirectionLimits(500, None)
    half_each = (1.0, 500, 250, 0, 0)
    assert load_ratio(separate_charges(read, write), *half_each) == pytest.approx(0.5)
    assert load_ratio(shared_charges(read, write), *half_each) == pytest.approx(1.0)


def test_separate_limits_are_one_charge_each() -> None:
    charges = separate_charges(DirectionLimits(1000, 2000), DirectionLimits(None, 4000))
    assert charges == (
        Charge("iops", read_s=1 / 1000),
        Charge("bandwidth", read_byte_s=1 / 2000),
        Charge("bandwidth", written_byte_s=1 / 4000),
    )


@given(COUNTS, COUNTS, BYTES, BYTES, st.integers(1, 2**24))
def test_chunks_are_the_larger_of_requests_and_bytes_per_chunk(
    reads: int, writes: int, read_bytes: int, written_bytes: int, chunk_bytes: int
) -> None:
    charges = chunked(
        shared_charges(DirectionLimits(100, None), DirectionLimits(50, None)), chunk_bytes
    )
    read_chunks = max(reads, read_bytes / chunk_bytes)
    written_chunks = max(writes, written_bytes / chunk_bytes)
    load = load_ratio(charges, 1.0, reads, writes, read_bytes, written_bytes)
    assert load == pytest.approx(read_chunks / 100 + written_chunks / 50)


def test_chunks_leave_bandwidth_alone() -> None:
    bandwidth = separate_charges(DirectionLimits(None, 1e6), DirectionLimits(None, 1e6))
    assert chunked(bandwidth, 4096) == bandwidth


@pytest.mark.parametrize(
    ("iops", "bandwidth_mib", "c1", "c2"),
    [(512, 1024, 512, 2145386496), (4096, 2048, 4124, 2451870281), (300, 0, 300, 0)],
)
def test_constants_of_known_profiles(iops: int, bandwidth_mib: int, c1: int, c2: int) -> None:
    assert service_constants(iops, bandwidth_mib * MIB, LAW) == (c1, c2)


def test_a_bandwidth_below_what_small_requests_need_leaves_the_iops() -> None:
    c1, _ = service_constants(10000, 1 * MIB, LAW)
    assert c1 == 10000


def test_an_endless_bandwidth_has_the_largest_constant() -> None:
    assert service_constants(1e9, 1e15, LAW)[1] == 2**64 - 1


@given(st.integers(100, 100_000), st.floats(1.1, 50))
def test_small_requests_run_at_the_iops_and_large_ones_at_the_bandwidth(
    iops: int, surplus: float
) -> None:
    bytes_per_second = math.ceil(iops * LAW.small_bytes * surplus)
    price = enforced_cost(DirectionLimits(iops, bytes_per_second), LAW)
    small_s = price.request_s + LAW.small_bytes * price.byte_s
    large_s = price.request_s + LAW.large_bytes * price.byte_s
    assert 1 / small_s == pytest.approx(iops, rel=0.01)  # the constants are whole numbers
    assert LAW.large_bytes / large_s == pytest.approx(bytes_per_second, rel=0.01)


@given(st.integers(1, 100_000), st.floats(1.01, 1000), st.integers(0, 2**30))
def test_what_is_published_is_never_cheaper_than_what_is_enforced(
    iops: int, surplus: float, size_bytes: int
) -> None:
    allowance = DirectionLimits(iops, math.ceil(iops * LAW.small_bytes * surplus))
    published, enforced = published_cost(allowance), enforced_cost(allowance, LAW)
    promised_s = published.request_s + size_bytes * published.byte_s
    assert promised_s >= (enforced.request_s + size_bytes * enforced.byte_s) * (1 - 1e-12)


def test_without_iops_only_bytes_are_charged() -> None:
    assert enforced_cost(DirectionLimits(None, 1e6), LAW) == (0.0, 1e-6)


def test_an_additive_law_needs_two_sizes() -> None:
    with pytest.raises(ValueError, match="small_bytes < large_bytes"):
        Additive(small_bytes=4096, large_bytes=4096)
