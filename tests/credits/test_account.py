"""The burst credits of one disk as it is seen."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.credits.account import SHORTEST_S, CreditAccount, open_account, use_of
from disksla.credits.bounds import from_bounds
from disksla.limits.limits import NO_LIMITS, Bucket, Burst, Limits, Rates, build_limits
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import Throttle

IOPS = Bucket("iops", 8000.0, 300.0, 300.0, 2000.0)
BYTES = Bucket("bytes", 100e6, 25e6, 25e6, 60e6)
SERVICE = Bucket("service_seconds", 60.0, 0.1, 1.0, 2.0, drain="excess")
BASE = Rates(300.0, 300.0, 25e6, 25e6)
PEAK = Rates(2000.0, 2000.0, 60e6, 60e6)


def limits_of(*buckets: Bucket) -> Limits:
    return build_limits(BASE, "sum", burst=Burst(PEAK, buckets))


LIMITS = limits_of(IOPS, BYTES)


def window(reads: int = 0, seconds: float = 0.1, inflight: int = 0) -> Interval:
    return Interval(1000.0, seconds, reads, 0, reads * 4096, 0, reads, 0, inflight)


def holding(level: float, at_s: float = 1000.0) -> CreditAccount:
    return CreditAccount(
        (from_bounds(IOPS, level, level, level, 1.0), from_bounds(BYTES, 5e7, 5e7, 5e7, 4096.0)),
        at_s,
    )


def bounds(account: CreditAccount | None) -> tuple[float, float]:
    assert account is not None
    return account.bucket_credits[0].lower_credits, account.bucket_credits[0].upper_credits


def test_terms_without_a_burst_have_no_purse() -> None:
    assert open_account(NO_LIMITS, 1000.0) is None


def test_a_disk_that_was_never_seen_may_have_anything() -> None:
    account = open_account(LIMITS, 1000.0)
    assert account is not None
    assert [
        (level.resource, level.capacity_credits, level.lower_credits, level.upper_credits)
        for level in account.levels(LIMITS, window())
    ] == [("iops", 8000.0, 0.0, 8000.0), ("bytes", 100e6, 0.0, 100e6)]


def test_rest_fills_every_bucket_at_its_rate() -> None:
    before = holding(1000.0)
    rested = before.after_idle((IOPS, BYTES), 1001.0)
    assert rested.at_s == 1001.0
    for then, now, bucket in zip(
        before.bucket_credits, rested.bucket_credits, (IOPS, BYTES), strict=True
    ):
        filled = bucket.fill_per_second
        assert now.upper_credits == pytest.approx(then.upper_credits + filled, rel=0.05)
        assert now.lower_credits == pytest.approx(then.lower_credits + filled, rel=0.05)


def test_rest_fills_up_to_the_capacity() -> None:
    account = open_account(LIMITS, 1000.0)
    assert account is not None
    lower, upper = bounds(account.after_idle((IOPS, BYTES), 2000.0))
    assert lower == pytest.approx(8000.0, rel=0.02)
    assert upper == 8000.0


def test_less_than_a_window_is_no_rest() -> None:
    account = holding(1000.0)
    assert account.after_idle((IOPS, BYTES), 1000.0 + 0.9 * SHORTEST_S) is account
    assert account.after_idle((IOPS, BYTES), 990.0) is account


@given(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=10), st.floats(0.0, 8000.0))
def test_rest_in_parts_is_rest(parts_s: list[float], level: float) -> None:
    """So it makes no difference whether somebody looked at the disk meanwhile."""
    at_once = in_parts = holding(level)
    for part_s in parts_s:
        in_parts = in_parts.after_idle((IOPS, BYTES), in_parts.at_s + part_s)
    at_once = at_once.after_idle((IOPS, BYTES), in_parts.at_s)
    assert bounds(in_parts) == pytest.approx(bounds(at_once), abs=1e-6)


def test_a_window_may_come_after_a_rest() -> None:
    rested = holding(1000.0).after_idle((IOPS, BYTES), 1009.9)
    expected = rested.after_window(LIMITS, window(200), None, 1010.0)
    assert bounds(holding(1000.0).after_window(LIMITS, window(200), None, 1010.0)) == (
        pytest.approx(bounds(expected))
    )
    assert bounds(expected)[1] < bounds(rested)[1]


def test_a_window_takes_what_its_requests_used_of_each_bucket() -> None:
    iops, nbytes = holding(8000.0).after_window(LIMITS, window(200), None, 1000.1).bucket_credits
    assert iops.estimate_credits == pytest.approx(8000.0 - 200 + 15)
    assert nbytes.estimate_credits == pytest.approx(5e7 - 200 * 4096 + 2.5e6)


@pytest.mark.parametrize(
    ("throttle", "emptied"),
    [
        (None, []),
        (Throttle("base", "iops"), ["iops"]),
        (Throttle("base", "bandwidth"), ["bytes"]),
        (Throttle("burst", "iops"), []),
        (Throttle("unknown", "iops"), []),
        (Throttle("base", "unknown"), []),
    ],
)
def test_a_disk_held_at_its_base_has_emptied_the_bucket_that_holds_it(
    throttle: Throttle | None, emptied: list[str]
) -> None:
    account = open_account(LIMITS, 1000.0)
    assert account is not None
    for number in range(1, 6):
        account = account.after_window(
            LIMITS, window(30, inflight=8), throttle, 1000.0 + number / 10
        )
    levels = account.levels(LIMITS, window(30))
    assert [
        level.resource for level in levels if level.upper_credits < 0.05 * level.capacity_credits
    ] == emptied


@pytest.mark.parametrize("limit", ["iops", "bandwidth"])
def test_seconds_of_service_are_emptied_at_either_limit(limit: str) -> None:
    limits = limits_of(SERVICE)
    account = open_account(limits, 1000.0)
    assert account is not None
    throttle = Throttle("base", "iops" if limit == "iops" else "bandwidth")
    for number in range(1, 6):
        account = account.after_window(
            limits, window(33, inflight=8), throttle, 1000.0 + number / 10
        )
    assert bounds(account)[1] < 5.0


def test_a_gap_of_which_nothing_is_known_widens_the_bounds() -> None:
    away = holding(4000.0).after_gap(LIMITS, None, 1001.0)
    lower, upper = bounds(away)
    assert lower <= 4000.0 - (2000 - 300)
    assert upper >= 4000.0 + 300
    assert away.at_s == 1001.0


def test_a_gap_of_which_the_use_is_known_does_not() -> None:
    lower, upper = bounds(holding(4000.0).after_gap(LIMITS, window(1000), 1002.0))
    assert lower <= 4000.0 - 1000 + 600 <= upper
    assert upper - lower < 800


def test_requests_in_flight_after_a_gap_may_have_been_paid_for() -> None:
    """They complete later, and are counted as use once more then."""
    _, without = bounds(holding(4000.0).after_gap(LIMITS, None, 1001.0))
    _, with_them = bounds(holding(4000.0).after_gap(LIMITS, None, 1001.0, inflight=64))
    assert with_them == pytest.approx(without + 64)


def test_time_that_runs_backwards_is_no_time() -> None:
    lower, upper = bounds(holding(4000.0).after_gap(LIMITS, None, 900.0))
    assert lower <= 4000.0 <= upper
    assert upper - lower < 100


def test_credits_are_exhausted_at_the_pace_of_late() -> None:
    iops, nbytes = holding(4000.0).levels(LIMITS, window(1300, seconds=1.0))
    assert iops.exhaustion_s == pytest.approx(4.0)
    assert nbytes.exhaustion_s == math.inf
    assert holding(4000.0).levels(LIMITS, window(300, seconds=1.0))[0].exhaustion_s == math.inf


def test_use_is_in_the_unit_of_its_resource() -> None:
    both = Interval(1.0, 1.0, 100, 50, 100 * 4096, 50 * 8192, None, None, 0)
    assert use_of("iops", both, LIMITS) == 150
    assert use_of("bytes", both, LIMITS) == 100 * 4096 + 50 * 8192
    assert use_of("service_seconds", both, LIMITS) == pytest.approx(0.5)
    assert use_of("service_seconds", both, NO_LIMITS) == 0.0


def test_windows_too_short_to_reckon_with_are_put_together() -> None:
    whole = holding(4000.0).after_window(LIMITS, window(100, 0.1), None, 1000.1)
    short = holding(4000.0)
    for number in range(1, 10):
        before = short
        short = short.after_window(LIMITS, window(10, 0.01), None, 1000.0 + number / 100)
        assert (short.bucket_credits == before.bucket_credits) == (number < 9)
    short = short.after_window(LIMITS, window(10, 0.01), None, 1000.1)
    assert list(short.pending_credits) == [10, 40960]
    rested = short.after_idle((IOPS, BYTES), 1000.2), whole.after_idle((IOPS, BYTES), 1000.2)
    assert bounds(rested[0]) == pytest.approx(bounds(rested[1]), abs=20)
    gone = short.after_gap(LIMITS, window(5, 0.0), 1000.2)
    assert gone.pending_credits == ()
    assert bounds(gone)[1] < bounds(whole)[1] + 300 * 0.1
