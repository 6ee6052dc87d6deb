"""Cost model: charges of requests, and the load of a window."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import KIB, MIB
from disksla.promise.catalogue.cost_model import (
    Additive,
    Charge,
    Rates,
    Work,
    chunked,
    enforced_charges,
    load_ratio,
    published_charges,
    separate_charges,
    service_constants,
    shared_charges,
)

ADDITIVE = Additive(small_bytes=4 * KIB, large_bytes=4 * MIB)
IOPS = st.integers(1, 100_000)
_BANDWIDTHS = st.none() | st.integers(4 * KIB, 2**32)
RATES = st.builds(Rates, st.none() | IOPS, st.none() | IOPS, _BANDWIDTHS, _BANDWIDTHS)
COUNTS = st.integers(0, 10**6)
BYTES = st.integers(0, 2**40)
WINDOWS = st.tuples(COUNTS, COUNTS, BYTES, BYTES)


@st.composite
def all_charges(draw: st.DrawFn) -> tuple[Charge, ...]:
    """Return the charges of any cost model for any limits."""
    rates, chunks = draw(RATES), draw(st.integers(1, 2**20))
    separate, shared = separate_charges(rates), shared_charges(rates)
    of_time = [published_charges(rates), enforced_charges(rates, ADDITIVE)]
    models = [separate, shared, *of_time, chunked(separate, chunks), chunked(shared, chunks)]
    return draw(st.sampled_from(models))


@given(all_charges(), WINDOWS, WINDOWS)
def test_load_does_not_decrease_with_requests(
    charges: tuple[Charge, ...], window: tuple[int, ...], more: tuple[int, ...]
) -> None:
    grown = tuple(map(sum, zip(window, more, strict=True)))
    before, after = load_ratio(charges, 0.1, *window), load_ratio(charges, 0.1, *grown)
    if before is None or after is None:
        assert charges == ()
    else:
        assert before <= after


@given(all_charges(), st.integers(2, 1000), BYTES)
def test_load_does_not_increase_by_merging_requests(
    charges: tuple[Charge, ...], requests: int, size_bytes: int
) -> None:
    apart = load_ratio(charges, 1.0, requests, requests, size_bytes, size_bytes)
    merged = load_ratio(charges, 1.0, requests - 1, requests - 1, size_bytes, size_bytes)
    assert (merged or 0.0) <= (apart or 0.0)


def test_load_without_charges_is_none() -> None:
    assert load_ratio((), 0.1, 10, 10, 4096, 4096) is None


def test_load_of_idle_window_is_zero() -> None:
    assert load_ratio(separate_charges(Rates(300, 300)), 1, 0, 0, 0, 0) == 0


@given(IOPS, IOPS, st.floats(0.001, 100))
def test_load_at_limit_is_one(read_iops: int, write_iops: int, seconds: float) -> None:
    rates = Rates(read_iops, write_iops, 1e9, 1e9)
    for charges in (separate_charges(rates), shared_charges(rates)):
        at_limit = load_ratio(charges, seconds, read_iops * seconds, 0, 0, 0)
        assert at_limit == pytest.approx(1.0)
        assert load_ratio(charges, seconds, 0, 0, 0, 1e9 * seconds) == pytest.approx(1.0)


def test_separate_and_shared_charges_of_mixed_load() -> None:
    rates, half_each = Rates(1000, 500), (1.0, 500, 250, 0, 0)
    assert load_ratio(separate_charges(rates), *half_each) == pytest.approx(0.5)
    assert load_ratio(shared_charges(rates), *half_each) == pytest.approx(1.0)


def test_separate_charges_are_one_per_limit() -> None:
    assert separate_charges(Rates(1000, None, 2000, 4000)) == (
        Charge("iops", read_s=1 / 1000),
        Charge("bandwidth", read_byte_s=1 / 2000),
        Charge("bandwidth", written_byte_s=1 / 4000),
    )


@given(COUNTS, COUNTS, BYTES, BYTES, st.integers(1, 2**24))
def test_chunks_are_maximum_of_requests_and_bytes_per_chunk(
    reads: int, writes: int, read_bytes: int, written_bytes: int, chunk_bytes: int
) -> None:
    charges = chunked(shared_charges(Rates(100, 50)), chunk_bytes)
    read_chunks = max(reads, read_bytes / chunk_bytes)
    written_chunks = max(writes, written_bytes / chunk_bytes)
    load = load_ratio(charges, 1.0, reads, writes, read_bytes, written_bytes)
    assert load == pytest.approx(read_chunks / 100 + written_chunks / 50)


def test_chunks_do_not_change_bandwidth_charges() -> None:
    bandwidth = separate_charges(Rates(None, None, 1e6, 1e6))
    assert chunked(bandwidth, 4096) == bandwidth


@pytest.mark.parametrize(
    ("iops", "bandwidth_mib", "c1", "c2"),
    [(512, 1024, 512, 2145386496), (4096, 2048, 4124, 2451870281), (300, 0, 300, 0)],
)
def test_service_constants_of_known_profiles(
    iops: int, bandwidth_mib: int, c1: int, c2: int
) -> None:
    assert service_constants(iops, bandwidth_mib * MIB, ADDITIVE) == (c1, c2)


def test_service_constants_with_low_bandwidth() -> None:
    c1, _ = service_constants(10000, 1 * MIB, ADDITIVE)
    assert c1 == 10000


def test_service_constants_with_unbounded_bandwidth() -> None:
    assert service_constants(1e9, 1e15, ADDITIVE)[1] == 2**64 - 1


@given(st.integers(100, 100_000), st.floats(1.1, 50))
def test_enforced_cost_reaches_both_limits(iops: int, surplus: float) -> None:
    bytes_per_second = math.ceil(iops * ADDITIVE.small_bytes * surplus)
    [cost] = enforced_charges(Rates(iops, None, bytes_per_second), ADDITIVE)
    small_s = cost.read_s + ADDITIVE.small_bytes * cost.read_byte_s
    large_s = cost.read_s + ADDITIVE.large_bytes * cost.read_byte_s
    assert 1 / small_s == pytest.approx(iops, rel=0.01)  # the constants are whole numbers
    assert ADDITIVE.large_bytes / large_s == pytest.approx(bytes_per_second, rel=0.01)


@given(st.integers(1, 100_000), st.floats(1.01, 1000), st.integers(0, 2**30))
def test_published_cost_is_not_below_enforced_cost(
    iops: int, surplus: float, size_bytes: int
) -> None:
    rates = Rates(None, iops, None, math.ceil(iops * ADDITIVE.small_bytes * surplus))
    work = Work(writes=1, written_bytes=size_bytes)
    [published], [enforced] = published_charges(rates), enforced_charges(rates, ADDITIVE)
    assert work.cost_s(published) >= work.cost_s(enforced) * (1 - 1e-12)


def test_enforced_cost_without_iops_charges_bytes() -> None:
    charges = enforced_charges(Rates(None, None, 1e6), ADDITIVE)
    assert charges == (Charge("service", read_byte_s=1e-6),)


def test_additive_rejects_equal_sizes() -> None:
    with pytest.raises(ValueError, match="expected small_bytes < large_bytes"):
        Additive(small_bytes=4096, large_bytes=4096)


def test_work_adds_up() -> None:
    assert Work(1, 2, 3, 4) + Work(10, 20, 30, 40) * 2 == Work(21, 42, 63, 84)


def test_load_of_work_is_that_of_the_fullest_limit() -> None:
    charges = separate_charges(Rates(1000.0, 500.0, 100e6, 100e6))
    work = Work(500, 400, 10**6, 10**6)
    assert work.load(charges, 1.0) == pytest.approx(0.8)
    assert max(work.cost_s(charge) for charge in charges) == pytest.approx(0.8)
