"""The burst credits of one disk while it is busy, idle or not sampled."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.credits.account import SHORTEST_S, CreditAccount, open_account, use_of
from disksla.credits.bounds import Use, from_bounds
from disksla.limits.limits import NO_LIMITS, Bucket, Burst, Limits, Rates, build_limits
from disksla.verdict.interval import Interval
from disksla.verdict.throttle import Throttle

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


def account_at(level: float, at_s: float = 1000.0) -> CreditAccount:
    return CreditAccount(
        (from_bounds(IOPS, level, level, level, 1.0), from_bounds(BYTES, 5e7, 5e7, 5e7, 4096.0)),
        at_s,
    )


def bounds(account: CreditAccount | None) -> tuple[float, float]:
    assert account is not None
    return account.bucket_credits[0].lower_credits, account.bucket_credits[0].upper_credits


def test_terms_without_a_burst_have_no_account() -> None:
    assert open_account(NO_LIMITS, 1000.0) is None


def test_open_account_is_between_zero_and_capacity() -> None:
    account = open_account(LIMITS, 1000.0)
    assert account is not None
    assert [
        (level.resource, level.capacity_credits, level.lower_credits, level.upper_credits)
        for level in account.levels(LIMITS, window())
    ] == [("iops", 8000.0, 0.0, 8000.0), ("bytes", 100e6, 0.0, 100e6)]


def test_after_idle_fills_every_bucket_at_its_rate() -> None:
    before = account_at(1000.0)
    idled = before.after_idle((IOPS, BYTES), 1001.0)
    assert idled.at_s == 1001.0
    for then, now, bucket in zip(
        before.bucket_credits, idled.bucket_credits, (IOPS, BYTES), strict=True
    ):
        filled = bucket.fill_per_second
        assert now.upper_credits == pytest.approx(then.upper_credits + filled, rel=0.05)
        assert now.lower_credits == pytest.approx(then.lower_credits + filled, rel=0.05)


def test_after_idle_fills_up_to_the_capacity() -> None:
    account = open_account(LIMITS, 1000.0)
    assert account is not None
    lower, upper = bounds(account.after_idle((IOPS, BYTES), 2000.0))
    assert lower == pytest.approx(8000.0, rel=0.02)
    assert upper == 8000.0


def test_after_idle_of_less_than_a_window_is_unchanged() -> None:
    account = account_at(1000.0)
    assert account.after_idle((IOPS, BYTES), 1000.0 + 0.9 * SHORTEST_S) is account
    assert account.after_idle((IOPS, BYTES), 990.0) is account


@given(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=10), st.floats(0.0, 8000.0))
def test_after_idle_in_parts_is_after_idle(parts_s: list[float], level: float) -> None:
    """The result does not depend on how often the account was updated."""
    at_once = in_parts = account_at(level)
    for part_s in parts_s:
        in_parts = in_parts.after_idle((IOPS, BYTES), in_parts.at_s + part_s)
    at_once = at_once.after_idle((IOPS, BYTES), in_parts.at_s)
    assert bounds(in_parts) == pytest.approx(bounds(at_once), abs=1e-6)


def test_after_window_following_idle_time() -> None:
    idled = account_at(1000.0).after_idle((IOPS, BYTES), 1009.9)
    expected = idled.after_window(LIMITS, window(200), None, 1010.0)
    assert bounds(account_at(1000.0).after_window(LIMITS, window(200), None, 1010.0)) == (
        pytest.approx(bounds(expected))
    )
    assert bounds(expected)[1] < bounds(idled)[1]


def test_after_window_drains_every_bucket() -> None:
    iops, nbytes = (
        account_at(8000.0).after_window(LIMITS, window(200), None, 1000.1).bucket_credits
    )
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
def test_throttling_at_base_empties_the_throttling_bucket(
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
def test_service_seconds_are_emptied_at_either_limit(limit: str) -> None:
    limits = limits_of(SERVICE)
    account = open_account(limits, 1000.0)
    assert account is not None
    throttle = Throttle("base", "iops" if limit == "iops" else "bandwidth")
    for number in range(1, 6):
        account = account.after_window(
            limits, window(33, inflight=8), throttle, 1000.0 + number / 10
        )
    assert bounds(account)[1] < 5.0


def test_gap_of_unknown_use_widens_the_bounds() -> None:
    unobserved = account_at(4000.0).after_gap(LIMITS, None, 1001.0)
    lower, upper = bounds(unobserved)
    assert lower <= 4000.0 - (2000 - 300)
    assert upper >= 4000.0 + 300
    assert unobserved.at_s == 1001.0


def test_gap_of_known_use_keeps_the_bounds() -> None:
    lower, upper = bounds(account_at(4000.0).after_gap(LIMITS, window(1000), 1002.0))
    assert lower <= 4000.0 - 1000 + 600 <= upper
    assert upper - lower < 800


def test_gap_may_have_charged_requests_in_flight() -> None:
    """They complete later, and are counted as use again."""
    _, without = bounds(account_at(4000.0).after_gap(LIMITS, None, 1001.0))
    _, with_them = bounds(account_at(4000.0).after_gap(LIMITS, None, 1001.0, inflight=64))
    assert with_them == pytest.approx(without + 64)


def test_gap_of_negative_time_is_no_time() -> None:
    lower, upper = bounds(account_at(4000.0).after_gap(LIMITS, None, 900.0))
    assert lower <= 4000.0 <= upper
    assert upper - lower < 100


def test_levels_predict_exhaustion_at_the_recent_rate() -> None:
    iops, nbytes = account_at(4000.0).levels(LIMITS, window(1300, seconds=1.0))
    assert iops.exhaustion_s == pytest.approx(4.0)
    assert nbytes.exhaustion_s == math.inf
    assert account_at(4000.0).levels(LIMITS, window(300, seconds=1.0))[0].exhaustion_s == math.inf


def test_use_of_is_in_the_unit_of_the_resource() -> None:
    both = Interval(1.0, 1.0, 100, 50, 100 * 4096, 50 * 8192, None, None, 0)
    assert use_of("iops", both, LIMITS) == 150
    assert use_of("bytes", both, LIMITS) == 100 * 4096 + 50 * 8192
    assert use_of("service_seconds", both, LIMITS) == pytest.approx(0.5)
    assert use_of("service_seconds", both, NO_LIMITS) == 0.0


def test_short_windows_are_accumulated() -> None:
    whole = account_at(4000.0).after_window(LIMITS, window(100, 0.1), None, 1000.1)
    short = account_at(4000.0)
    for number in range(1, 10):
        before = short
        short = short.after_window(LIMITS, window(10, 0.01), None, 1000.0 + number / 100)
        assert (short.bucket_credits == before.bucket_credits) == (number < 9)
    short = short.after_window(LIMITS, window(10, 0.01), None, 1000.1)
    assert list(short.pending_credits) == [Use.exactly(10), Use.exactly(40960)]
    idled = short.after_idle((IOPS, BYTES), 1000.2), whole.after_idle((IOPS, BYTES), 1000.2)
    assert bounds(idled[0]) == pytest.approx(bounds(idled[1]), abs=20)
    unsampled = short.after_gap(LIMITS, window(5, 0.0), 1000.2)
    assert unsampled.pending_credits == ()
    assert bounds(unsampled)[1] < bounds(whole)[1] + 300 * 0.1


@st.composite
def flushed_windows(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Return, for each window, data writes, empty flushes, and how many flushes they became."""
    windows = []
    for _ in range(draw(st.integers(1, 30))):
        data = draw(st.integers(0, 200))
        empty = draw(st.integers(0, 200))
        merged = draw(st.integers(min(1, empty), empty))
        windows.append((data, empty, merged))
    return windows


@given(flushed_windows(), st.floats(0, 1), st.sampled_from([None, 8192, 2**20]))
def test_bounds_contain_the_level_where_flushes_are_counted_as_writes(
    windows: list[tuple[int, int, int]], share: float, largest_request_bytes: int | None
) -> None:
    """A limiter charges data writes; the kernel counts empty flushes as well, and merges them."""
    limits = limits_of(IOPS)
    level = share * IOPS.capacity
    account = CreditAccount((from_bounds(IOPS, level, level, level),), 0.0)
    for number, (wanted, empty, merged) in enumerate(windows, start=1):
        data = min(wanted, int(level + 30))
        level = min(IOPS.capacity, level + 30 - data)
        window = Interval(number / 10, 0.1, 0, data + empty, 0, data * 8192, 0, 0, 0, merged)
        fewest = window.with_fewest_writes(largest_request_bytes) if empty else None
        account = account.after_window(limits, window, None, number / 10, fewest)
        (now,) = account.bucket_credits
        assert now.lower_credits - 1e-6 <= level <= now.upper_credits + 1e-6
