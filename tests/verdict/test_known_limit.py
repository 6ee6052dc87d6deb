"""Throttling at a limit of the terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.cost_model import Charge
from disksla.limits.limits import NO_LIMITS, Burst, Rates, build_limits
from disksla.verdict.interval import Interval
from disksla.verdict.known_limit import (
    binding_limit,
    exceeds_limit,
    is_far_below,
    is_near_limit,
    may_be_throttled,
    throttled_at_limit,
    throttled_now_and_then,
)
from disksla.verdict.span import span_of
from disksla.verdict.throttle import Throttle
from support.releases import release

LIMITS = build_limits(Rates(300.0, 300.0), "sum")
WITH_BURST = build_limits(Rates(300.0, 300.0), "sum", burst=Burst(Rates(2000.0, 2000.0)))


@pytest.mark.parametrize(
    ("reads", "is_throttled"),
    [
        ([30], True),
        ([60, 30], True),  # the first contains two windows of the limiter
        ([20, 40, 30], True),  # samples while the limiter admits requests
        ([30, 30, 20, 40], True),
        ([20, 20, 20], False),
        ([60, 60, 60], False),
        ([2], False),
        ([1], False),
    ],
)
def test_throttled_at_limit_if_the_rate_is_the_limit(reads: list[int], is_throttled: bool) -> None:
    waiting = tuple(release(each, inflight=2) for each in reads)
    expected = Throttle("base", "iops") if is_throttled else None
    assert throttled_at_limit(waiting, None, LIMITS, 0.03, 0.1) == expected


@pytest.mark.parametrize("seconds", [0.3, 0.5, 1.0])
def test_throttled_at_limit_with_a_long_release(seconds: float) -> None:
    once = release(round(300 * seconds), inflight=2, seconds=seconds)
    assert throttled_at_limit((once,) * 3, None, LIMITS, 0.03, 0.1) == Throttle("base", "iops")
    rest = release(round(300 * seconds) - 20, inflight=2, seconds=seconds - 0.1)
    in_two = (once, rest, release(20, inflight=2), once)
    assert throttled_at_limit(in_two, None, LIMITS, 0.03, 0.1) == Throttle("base", "iops")


def test_single_release_without_a_backlog_is_not_throttled_yet() -> None:
    """Requests of a batch follow one another, and seem to have waited if the disk is slow."""
    slow = release(30, 63)
    assert throttled_at_limit((slow,), None, LIMITS, 0.03, 0.1) is None
    assert may_be_throttled((slow,), LIMITS, 0.03, 0.1)
    assert throttled_at_limit((slow, slow), None, LIMITS, 0.03, 0.1) == Throttle("base", "iops")
    assert not may_be_throttled((release(30, 20),), LIMITS, 0.03, 0.1)


def test_throttled_at_limit_until_a_release_off() -> None:
    behind = tuple(release(reads, inflight=2) for reads in (30, 30, 30, 5))
    assert throttled_at_limit(behind, None, LIMITS, 0.03, 0.1) is None
    assert throttled_at_limit(behind, "base", LIMITS, 0.03, 0.1) == Throttle("base", "iops")
    away = tuple(release(reads, inflight=2) for reads in (30, 5, 5, 5))
    assert throttled_at_limit(away, "base", LIMITS, 0.03, 0.1) is None


@pytest.mark.parametrize(
    ("reads", "is_throttled"),
    [
        ([60] * 9 + [30], False),
        ([60] * 9 + [30, 30], True),
        ([60] * 9 + [30, 60, 30], False),
        ([33] * 12 + [30], True),  # too little to be sure
    ],
)
def test_throttled_at_limit_after_more_than_it(reads: list[int], is_throttled: bool) -> None:
    waiting = tuple(release(each, inflight=2) for each in reads)
    expected = Throttle("base", "iops") if is_throttled else None
    assert throttled_at_limit(waiting, None, LIMITS, 0.03, 0.1) == expected
    in_burst = throttled_at_limit(waiting, None, WITH_BURST, 0.03, 0.1)
    assert in_burst == Throttle("base", "iops")


@pytest.mark.parametrize(
    ("reads", "seconds", "exceeds"),
    [
        ([60, 60], 0.1, True),
        ([60, 30], 0.1, False),  # one release more
        ([60], 0.1, False),
        ([300, 300], 0.3, False),  # of a limiter with long windows
        ([], 0.1, False),
    ],
)
def test_exceeds_limit_by_more_than_a_release(
    reads: list[int], seconds: float, exceeds: bool
) -> None:
    waiting = tuple(release(each, inflight=2, seconds=seconds) for each in reads)
    assert exceeds_limit(waiting, LIMITS, 0.03, 0.1) == exceeds
    assert not exceeds_limit(waiting, WITH_BURST, 0.03, 0.1)


def test_throttled_at_limit_needs_a_promise() -> None:
    assert throttled_at_limit((release(inflight=2),), None, NO_LIMITS, 0.03, 0.1) is None


def now_and_then(*reads: int) -> Throttle | None:
    releases = tuple(release(each, read_ms=40, inflight=0) for each in reads[:-1])
    return throttled_now_and_then((*releases, release(reads[-1], read_ms=40)), LIMITS, 0.03, 0.1)


def test_throttled_now_and_then() -> None:
    often = (30, 30, 20, 20, 25, 20, 25, 20, 30)
    assert now_and_then(*often, 27) == Throttle("base", "iops")
    assert now_and_then(*often[:-1], 20, 30) == Throttle("base", "iops")
    assert now_and_then(*often[:-1], 20, 27) is None  # neither was at the limit
    assert now_and_then(*[30] * 10) is None  # the load does not vary
    assert now_and_then(*often[1:], 27) is None  # too few releases
    assert now_and_then(1, 1, 2, 1, 3, 1, 1, 2, 1, 1) is None  # too few requests
    assert now_and_then(30, 20, 20, 20, 20, 20, 20, 20, 20, 25) is None
    assert now_and_then(60, 60, 60, 20, 20, 25, 30, 30, 30, 27) is None  # above the limit


@pytest.mark.parametrize(
    ("reads", "flushes", "is_far"), [(7, 0, True), (8, 0, False), (30, 0, False), (7, 1, False)]
)
def test_far_below_is_a_quarter_of_the_limit(reads: int, flushes: int, is_far: bool) -> None:
    assert is_far_below(release(reads, flushes=flushes), LIMITS, 0.03, 0.1) is is_far


@pytest.mark.parametrize(
    ("reads", "is_near"),
    [(3, False), (15, False), (18, True), (30, True), (55, True), (62, False)],
)
def test_near_limit(reads: int, is_near: bool) -> None:
    assert is_near_limit(release(reads), LIMITS, 0.03, 0.1) is is_near


releases = st.builds(
    release,
    reads=st.integers(1, 12),
    read_ms=st.integers(0, 500),
    inflight=st.integers(0, 3),
    seconds=st.floats(0.01, 0.3),
)


@given(
    st.lists(releases, min_size=1, max_size=32).map(tuple),
    st.sampled_from([Rates(300.0, 300.0), Rates(60.0, 60.0)]),
    st.floats(0.001, 0.5),
)
def test_releases_far_below_reach_no_limit(
    waiting: tuple[Interval, ...], rates: Rates, tolerance: float
) -> None:
    limits = build_limits(rates, "sum")
    far = tuple(each for each in waiting if is_far_below(each, limits, tolerance, 0.1))
    assert not far or throttled_at_limit(far, None, limits, tolerance, 0.1) is None
    if far[-2:] == waiting[-2:]:
        assert throttled_now_and_then(waiting, limits, tolerance, 0.1) is None


def test_binding_limit_is_the_most_used() -> None:
    charges = (Charge("iops", read_s=1 / 300), Charge("bandwidth", read_byte_s=1 / 25e6))
    assert binding_limit(span_of((release(30),)), charges) == "iops"
    assert binding_limit(span_of((release(10, request_bytes=262144),)), charges) == "bandwidth"
    service = (Charge("service", read_s=1 / 300, read_byte_s=1 / 25e6),)
    assert binding_limit(span_of((release(30),)), service) == "iops"
    assert binding_limit(span_of((release(10, request_bytes=262144),)), service) == "bandwidth"
