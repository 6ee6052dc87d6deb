"""The burst credits of one disk while it is busy, idle or not sampled."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.catalogue.cost_model import Metered
from disksla.promise.catalogue.limits import NO_LIMITS, Bucket, Burst, Limits, Rates, build_limits
from disksla.verdict.credits.account import SHORTEST_S, CreditAccount, open_account, use_of
from disksla.verdict.credits.bounds import NO_USE, Use, from_bounds
from disksla.verdict.interval.interval import Interval
from disksla.verdict.throttling.throttle import Throttle
from support.examples import scaled

IOPS = Bucket("iops", 8000.0, 300.0, 300.0, 2000.0)
BYTES = Bucket("bytes", 100e6, 25e6, 25e6, 60e6)
SERVICE = Bucket("service_seconds", 60.0, 0.1, 1.0, 2.0, drain="excess")
BASE = Rates(300.0, 300.0, 25e6, 25e6)
PEAK = Rates(2000.0, 2000.0, 60e6, 60e6)


def limits_of(*buckets: Bucket) -> Limits:
    return build_limits(BASE, "sum", burst=Burst(PEAK, buckets))


LIMITS = limits_of(IOPS, BYTES)


def window(reads: int = 0, seconds: float = 0.1, inflight: int = 0) -> Interval:
    return Interval(reads, 0, reads * 4096, 0, 1000.0, seconds, reads, 0, inflight)


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


def test_after_idle_of_less_than_a_window_is_unchanged() -> None:
    account = account_at(1000.0)
    assert account.after_idle((IOPS, BYTES), 1000.0 + 0.9 * SHORTEST_S) is account
    assert account.after_idle((IOPS, BYTES), 990.0) is account


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
        (Throttle("base", "iops"), ["iops"]),
        (Throttle("base", "bandwidth"), ["bytes"]),
        (Throttle("burst", "iops"), []),
        (Throttle("base", "machine_iops"), []),
        (Throttle("unknown", "unknown"), []),
    ],
)
def test_a_bucket_at_whose_baseline_a_disk_is_throttled_is_empty(
    throttle: Throttle, emptied: list[str]
) -> None:
    """Its estimate; another bucket of the disk, or of the machine, may have credits."""
    before = open_account(LIMITS, 1000.0)
    assert before is not None
    after = before.at_baseline(LIMITS.buckets, throttle)
    levels = after.levels(LIMITS, window())
    assert [each.resource for each in levels if not each.estimate_credits] == emptied
    assert bounds(after) == bounds(before)


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
        level.resource for level in levels if level.upper_credits < 0.9 * level.capacity_credits
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
    both = Interval(100, 50, 100 * 4096, 50 * 8192, 1.0, 1.0, None, None, 0)
    service = Bucket("service_seconds", 100.0, 1.0, 1.0, 2.0)
    iops, nbytes = LIMITS.buckets
    assert use_of(iops, both, LIMITS) == Use.exactly(150)
    assert use_of(nbytes, both, LIMITS) == Use.exactly(100 * 4096 + 50 * 8192)
    assert use_of(service, both, LIMITS).likely == pytest.approx(0.5)
    assert use_of(service, both, NO_LIMITS) == NO_USE


REQUESTS = st.lists(st.integers(1, 4096).map(lambda sectors: 512 * sectors), max_size=50)


@given(REQUESTS, st.sampled_from([65536, 262144, 1048576]))
def test_use_in_chunks_contains_that_of_each_request(sizes: list[int], chunk_bytes: int) -> None:
    """Each request is its chunks, or all of them together are, if the provider merges them."""
    bucket = Bucket("iops", 5.4e6, 300, 300, 3000, chunk_bytes=chunk_bytes)
    interval = Interval(len(sizes), 0, sum(sizes), 0, 1.0, 1.0, None, None, 0)
    use = use_of(bucket, interval, LIMITS)
    counted = sum(math.ceil(size / chunk_bytes) for size in sizes)
    merged = sum(sizes) / chunk_bytes
    assert use.least <= min(counted, merged)
    assert use.least <= use.likely <= counted <= use.most


@given(REQUESTS)
def test_use_with_a_least_request_contains_that_of_each(sizes: list[int]) -> None:
    bucket = Bucket("bytes", 2**40, 4e7, 4e7, 2.5e8, least_request_bytes=2**20)
    interval = Interval(0, len(sizes), 0, sum(sizes), 1.0, 1.0, None, None, 0)
    use = use_of(bucket, interval, LIMITS)
    assert use.least <= sum(sizes) <= sum(max(size, 2**20) for size in sizes) <= use.most


CHUNKED = Bucket("iops", 3000.0, 300.0, 300.0, 3000.0, chunk_bytes=2**18)
LEAST = Bucket("bytes", 3e9, 4e7, 4e7, 2.5e8, least_request_bytes=2**20)


@scaled(30)
@given(
    bucket=st.sampled_from([CHUNKED, LEAST]),
    is_merged=st.booleans(),
    windows=st.lists(
        st.lists(st.sampled_from([4096, 65536, 2**19, 2**20]), max_size=40), max_size=60
    ),
    share=st.floats(0, 1),
)
def test_bounds_contain_the_level_however_requests_are_counted(
    bucket: Bucket, is_merged: bool, windows: list[list[int]], share: float
) -> None:
    """Requests use their own chunks or sizes, or are merged before they are counted."""
    limits = limits_of(bucket)
    account = open_account(limits, 1000.0)
    assert account is not None
    level = share * bucket.capacity
    for number, wanted in enumerate(windows, start=1):
        sizes = wanted
        if is_merged:
            use = sum(sizes) / (bucket.chunk_bytes or 1)
        elif bucket.chunk_bytes:
            use = sum(math.ceil(size / bucket.chunk_bytes) for size in sizes)
        else:
            use = sum(max(size, 2**20) for size in sizes)
        filled = min(bucket.capacity, level + bucket.fill_per_second * 0.1)
        if use > min(filled, bucket.peak_per_second * 0.1):
            sizes, use = [], 0  # the limiter does not admit so much in a window
        level = filled - use
        interval = Interval(len(sizes), 0, sum(sizes), 0, 1.0, 0.1, None, None, 0)
        account = account.after_window(limits, interval, None, 1000.0 + 0.1 * number)
        [now] = account.levels(limits, interval)
        slack = 1e-6 * bucket.capacity
        assert now.lower_credits - slack <= level <= now.upper_credits + slack


def test_large_requests_drain_credits_by_their_chunks() -> None:
    """100 reads of 1 MiB are 400 I/Os of gp2."""
    bucket = Bucket("iops", 5.4e6, 300, 300, 3000, chunk_bytes=2**18)
    assert (
        use_of(bucket, Interval(100, 0, 100 * 2**20, 0, 1, 1, None, None, 0), LIMITS).likely == 400
    )


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
        window = Interval(0, data + empty, 0, data * 8192, number / 10, 0.1, 0, 0, 0, merged)
        fewest = window.with_fewest_writes(largest_request_bytes) if empty else None
        account = account.after_window(limits, window, None, number / 10, fewest)
        (now,) = account.bucket_credits
        assert now.lower_credits - 1e-6 <= level <= now.upper_credits + 1e-6


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 2**20)), min_size=1, max_size=20))
def test_metered_use_contains_that_of_each_request(requests: list[tuple[bool, int]]) -> None:
    """As EFS meters: a third of a read, a write whole, each at least 4 KiB."""
    bucket = Bucket("bytes", 2**41, 1e7, 1e7, 1e8, metered=Metered(4096, 3))
    reads = [size for is_read, size in requests if is_read]
    writes = [size for is_read, size in requests if not is_read]
    interval = Interval(len(reads), len(writes), sum(reads), sum(writes), 0.0, 0.1, 0, 0, 0)
    use = use_of(bucket, interval, NO_LIMITS)
    metered = sum(max(each / 3, 4096) for each in reads) + sum(max(each, 4096) for each in writes)
    assert use.least - 1e-6 <= metered <= use.most + 1e-6
    assert use.least == use.likely
