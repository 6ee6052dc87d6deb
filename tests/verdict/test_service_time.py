"""Learning of the service time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumBurst, SumTerms, custom_limits
from disksla.limits import NO_LIMITS, Charge, Limits
from disksla.limits.limits import Rates, build_limits
from disksla.verdict.interval import Interval
from disksla.verdict.service_time import (
    ServiceTime,
    has_waiting,
    is_single,
    wait_s,
)
from support.examples import scaled
from support.releases import release


def learned(*windows: tuple[int, int]) -> float:
    service = ServiceTime()
    for requests, took_ms in windows:
        service = service.plus(requests, took_ms)
    return service.shortest_s


def test_few_requests_are_accumulated() -> None:
    assert learned((4, 3)) == 0.0
    assert learned((4, 3), (26, 26)) == pytest.approx(0.001)


def test_shortest_mean_is_kept() -> None:
    assert learned((50, 99), (50, 49), (50, 199)) == pytest.approx(0.001)


@scaled(50)
@given(
    service_ms=st.floats(0.05, 20),
    windows=st.lists(st.integers(1, 200), min_size=1, max_size=20),
)
def test_constant_service_time_despite_truncated_milliseconds(
    service_ms: float, windows: list[int]
) -> None:
    service, printed_ms, took_ms = ServiceTime(), 0, 0.0
    for requests in [*windows * 5, *[20] * 200]:
        took_ms += requests * service_ms
        service = service.plus(requests, int(took_ms) - printed_ms)
        printed_ms = int(took_ms)
        if service.shortest_s:
            assert service.shortest_s * 1000 > service_ms * (1 - 1e-9)
    assert service.shortest_s * 1000 == pytest.approx(service_ms, rel=0.05)


@pytest.mark.parametrize(
    ("inflight_before", "sampled", "load", "is_learned"),
    [
        (0, release(read_ms=20), 1.0, True),
        (0, release(read_ms=20), None, True),
        (None, release(read_ms=20), None, False),  # the first after a gap
        (1, release(read_ms=20), None, False),
        (0, release(read_ms=20, inflight=1), 1.0, True),
        (0, release(read_ms=30), 1.0, False),  # more than a quarter of the time
        (0, release(read_ms=30), 0.7, True),
        (0, release(read_ms=30, inflight=1), 0.7, False),
        (0, release(read_ms=60), 0.7, False),  # more than half of the time
        (0, release(read_ms=40, inflight=4), 1.0, True),  # they wait for the limit
        (0, release(9, read_ms=40, inflight=4), 1.0, False),  # too few for a mean
        (0, release(read_ms=40, inflight=4), None, False),
        (0, release(read_ms=40, inflight=4), 1.1, False),  # some waited and were admitted
        (0, release(read_ms=60, inflight=4), 1.0, False),
    ],
)
def test_service_time_is_learned_without_a_backlog(
    inflight_before: int | None, sampled: Interval, load: float | None, is_learned: bool
) -> None:
    limits = Limits()
    if load is not None:
        limits = Limits(promise_charges=(Charge("iops", load * sampled.seconds / sampled.reads),))
    learned = ServiceTime().learned(inflight_before, sampled, limits)
    assert (learned.shortest_s > 0) == is_learned


def test_release_with_a_shorter_mean_is_believed_whatever_was_in_flight() -> None:
    """Of a throttled disk, samples leave out the requests that waited in one of many releases."""
    service = ServiceTime(0.001)
    shorter = service.learned(1, release(26, read_ms=8, inflight=1), Limits())
    assert shorter.shortest_s == 9 / 26_000
    assert service.learned(16, release(26, read_ms=26, inflight=16), Limits()) == service
    assert ServiceTime().learned(1, release(26, read_ms=8, inflight=1), Limits()) == ServiceTime()


def test_release_under_a_full_load_is_not_mixed_with_pending_requests_of_a_light_one() -> None:
    """Of `bandwidth-sync` in the lab: 0.6 ms under a light load, then 0.4 ms under a full one."""
    service = ServiceTime(0.000591, 18, 11)
    throttled = Limits(promise_charges=(Charge("bandwidth", 0.1 / 61.5),))
    for inflight_before in (0, 1):
        found = service.learned(inflight_before, release(62, read_ms=24, inflight=1), throttled)
        assert found == ServiceTime(25 / 62_000, 18, 11)


def test_few_requests_that_took_little_are_not_believed() -> None:
    service = ServiceTime(0.001)
    assert service.learned(1, release(24, read_ms=8, inflight=1), Limits()) == service
    assert service.learned(1, release(9, read_ms=4, inflight=1), Limits()) == service


def test_first_release_of_a_throttled_load_corrects_a_long_service_time() -> None:
    """After a queue of 16 was throttled at less, one reader begins at the limit of 178 IOPS."""
    limits = Limits(promise_charges=(Charge("iops", 1 / 178),))
    deep = ServiceTime().learned(0, release(11, read_ms=22, inflight=16), limits)
    assert deep.shortest_s == pytest.approx(0.023 / 11)
    single = release(18, read_ms=6, inflight=1)
    assert deep.learned(0, single, limits).shortest_s == pytest.approx(0.007 / 18)
    assert deep.learned(1, single, limits).shortest_s == deep.shortest_s  # later ones need 25


def test_load_that_begins_throttled_between_samples_teaches_nothing() -> None:
    """Four requests pass in each window of 10 ms, of which a sample sees the first three."""
    limits = Limits(promise_charges=(Charge("iops", 1 / 400),))
    begun = ServiceTime().learned(0, release(12, read_ms=20, inflight=1), limits)
    assert begun.shortest_s == 0
    throttled = begun.learned(1, release(40, read_ms=98, inflight=1), limits)
    assert throttled == ServiceTime()


@pytest.mark.parametrize("limits", [Limits(), Limits(promise_charges=(Charge("iops", 1 / 300),))])
def test_light_load_counts_once_the_next_release_is_light_too(limits: Limits) -> None:
    begun = ServiceTime().learned(0, release(10, read_ms=20, inflight=1), limits)
    went_on = begun.learned(1, release(10, read_ms=50), limits)
    assert went_on == ServiceTime(0.021 / 10, 10, 20)
    assert begun.learned(1, release(10, read_ms=51), limits) == ServiceTime()
    assert begun.learned(None, release(10, read_ms=20), limits) == ServiceTime()  # after a gap
    assert begun.learned(0, release(10, read_ms=20), limits) == ServiceTime(0.041 / 20, 20, 40)


def test_long_release_is_not_mixed_with_pending_requests() -> None:
    pending = ServiceTime(0.001, 10, 10)
    assert pending.plus(200, 99) == ServiceTime(0.0005)


def test_service_time_needs_times_of_the_kernel() -> None:
    without = Interval(1.0, 0.1, 30, 0, 30 * 4096, 0, None, None, 0)
    assert ServiceTime().learned(0, without, Limits()) == ServiceTime()


@pytest.mark.parametrize(
    ("sampled", "service_s", "expected"),
    [
        (release(inflight=2), 0.0002, True),
        (release(reads=0, inflight=2), 0.0002, True),
        (release(reads=30, read_ms=6, inflight=1), 0.0002, False),
        (release(reads=30, read_ms=99, inflight=1), 0.0002, True),
        (release(reads=30, read_ms=99, inflight=0), 0.0033, False),
        (release(reads=30, read_ms=20), 0.0, False),
        (release(reads=30, read_ms=30), 0.0, True),
    ],
)
def test_has_waiting_beyond_service_time(
    sampled: Interval, service_s: float, expected: bool
) -> None:
    assert has_waiting(sampled, service_s) is expected


@given(st.integers(0, 1000), st.integers(0, 10**6), st.floats(0, 1))
def test_wait_s_is_between_zero_and_time_taken(reads: int, read_ms: int, service_s: float) -> None:
    assert 0 <= wait_s(release(reads, read_ms), service_s) <= read_ms / 1000


def test_data_writes_under_flushes_are_the_middle_of_their_range() -> None:
    """20 to 30 writes of data took 20 ms without flushes."""
    sampled = Interval(1.0, 0.1, 0, 30, 0, 81920, 0, 22, 0, 10, flush_ms=2)
    assert ServiceTime().learned(0, sampled, Limits()).shortest_s == pytest.approx(0.021 / 25)


def test_service_time_is_not_learned_while_the_group_has_load() -> None:
    """The first window of a reader at the limit of its machine may be busy for a part of it."""
    sampled = release(13, read_ms=47)
    assert ServiceTime().learned(0, sampled, Limits(), group_load=1.8) == ServiceTime()
    assert ServiceTime().learned(0, sampled, Limits(), group_load=0.5).shortest_s > 0
    quiet = release(2, read_ms=16)
    assert ServiceTime().learned(0, quiet, Limits(), group_load=1.0) == ServiceTime()


@pytest.mark.parametrize(
    ("inflight_before", "sampled", "expected"),
    [
        (1, release(5, read_ms=100, inflight=1), True),
        (1, release(5, read_ms=117, inflight=1), True),  # the first began before
        (0, release(5, read_ms=60), True),
        (2, release(5, read_ms=100, inflight=1), False),
        (1, release(5, read_ms=100, inflight=2), False),
        (1, release(50, read_ms=400, inflight=1), False),  # several at a time
    ],
)
def test_requests_that_follow_one_another(
    inflight_before: int, sampled: Interval, expected: bool
) -> None:
    assert is_single(inflight_before, sampled) is expected


LIMITS_700 = build_limits(Rates(700.0, 700.0, None, None), "sum")


@pytest.mark.parametrize(
    ("rest", "limits", "service_s"),
    [
        (release(250, read_ms=99, inflight=1), LIMITS_700, 0.1 / 250),
        (release(250, read_ms=99, inflight=1), NO_LIMITS, 0.0),  # any rate may be that of a limit
        (release(100, read_ms=99, inflight=1), LIMITS_700, 0.0),  # not much faster than the limit
        (release(20, read_ms=99, inflight=1, seconds=0.01), LIMITS_700, 0.0),  # too few
        (release(250, read_ms=99, inflight=2), LIMITS_700, 0.0),
        (release(250, read_ms=400, inflight=1), LIMITS_700, 0.0),  # more than one at a time
        (release(250, read_ms=None, inflight=1), LIMITS_700, 0.0),
    ],
)
def test_rest_of_a_release_shows_the_service_time(
    rest: Interval, limits: Limits, service_s: float
) -> None:
    learned_s = ServiceTime().learned_from_rest(rest, limits).shortest_s
    assert learned_s == pytest.approx(service_s)


def test_burst_of_the_terms_may_have_throttled_the_rest_of_a_release() -> None:
    terms = SumTerms(iops=700.0, burst=SumBurst(iops=3000.0, iops_credits=1000.0))
    rest = release(250, read_ms=99, inflight=1)
    assert ServiceTime().learned_from_rest(rest, custom_limits(terms)).shortest_s == 0.0
