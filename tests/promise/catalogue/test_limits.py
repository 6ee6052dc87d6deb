"""Limits and charges, built from rates."""

import pytest

from disksla.promise.catalogue.cost_model import Additive, Charge, Chunks, load_ratio
from disksla.promise.catalogue.limits import NO_LIMITS, Budgets, Burst, Limits, Rates, build_limits

RATES = Rates(500.0, 300.0, 70e6, 40e6)


def test_limits_default_is_no_limits() -> None:
    assert Limits() == NO_LIMITS
    assert NO_LIMITS.rates == Rates(None, None, None, None)


def test_build_limits_with_separate_budget() -> None:
    limits = build_limits(RATES, "separate", latency_s=0.001, latency_kind="guaranteed")
    assert [charge.limit for charge in limits.promise_charges] == [
        "iops", "iops", "bandwidth", "bandwidth",
    ]  # fmt: skip
    assert limits.promise_charges == limits.enforced_charges
    assert (limits.rates, limits.budget) == (RATES, Budgets("separate", "separate"))
    assert (limits.latency_s, limits.latency_kind) == (0.001, "guaranteed")


def test_build_limits_with_sum_budget() -> None:
    limits = build_limits(Rates(300.0, 300.0, 25e6, 25e6), "sum")
    assert limits.promise_charges == (
        Charge("iops", read_s=1 / 300, write_s=1 / 300),
        Charge("bandwidth", read_byte_s=1 / 25e6, written_byte_s=1 / 25e6),
    )
    assert load_ratio(limits.promise_charges, 1.0, 100, 200, 0, 0) == pytest.approx(1.0)


def test_budgets_of_requests_and_bytes_may_differ() -> None:
    """Google's SSD-backed disks share the time of requests, but not that of bytes."""
    limits = build_limits(Rates(1000.0, 500.0, 1e8, 2e8), Budgets("time_shared", "separate"))
    assert limits.promise_charges == (
        Charge("iops", read_s=1 / 1000, write_s=1 / 500),
        Charge("bandwidth", read_byte_s=1 / 1e8),
        Charge("bandwidth", written_byte_s=1 / 2e8),
    )
    assert limits.budget is not None
    assert limits.budget.kind == "mixed"


def test_build_limits_with_time_shared_budget() -> None:
    charges = build_limits(RATES, "time_shared").promise_charges
    assert load_ratio(charges, 1.0, 250, 150, 0, 0) == pytest.approx(1.0)
    assert load_ratio(charges, 1.0, 0, 0, 35e6, 20e6) == pytest.approx(1.0)


def test_build_limits_with_additive_cost() -> None:
    cost = Additive(small_bytes=4096, large_bytes=4194304)
    limits = build_limits(RATES, "time_shared", cost=cost)
    (promise,), (enforced,) = limits.promise_charges, limits.enforced_charges
    assert promise == Charge("service", 1 / 500, 1 / 300, 1 / 70e6, 1 / 40e6)
    assert enforced.limit == "service"
    assert promise.read_s > enforced.read_s
    assert promise.written_byte_s > enforced.written_byte_s


def test_build_limits_with_chunks() -> None:
    limits = build_limits(Rates(100.0, 100.0), "sum", cost=Chunks(chunk_bytes=1000))
    assert load_ratio(limits.promise_charges, 1.0, 10, 0, 50_000, 0) == pytest.approx(0.5)
    assert load_ratio(limits.promise_charges, 1.0, 60, 0, 50_000, 0) == pytest.approx(0.6)


def test_build_limits_charges_only_known_rates() -> None:
    limits = build_limits(Rates(read_iops=100.0), "separate")
    assert limits.promise_charges == (Charge("iops", read_s=0.01),)


def test_build_limits_with_burst() -> None:
    burst = Burst(Rates(2000.0, 2000.0), ())
    assert build_limits(RATES, "sum", burst=burst).burst == burst
