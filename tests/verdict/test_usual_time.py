"""The usual latency of a disk, and loads that come near a limit by chance."""

import math
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumTerms
from disksla.limits import NO_LIMITS, Limits
from disksla.limits.limits import Rates, build_limits
from disksla.verdict.interval import Interval, WriteCounts
from disksla.verdict.usual_time import UsualTime
from support.examples import scaled
from support.releases import release
from support.scenario_verdicts import judged
from support.simulated_limiter import Closed, Limiter, Medium, Open, Scenario, summed

LIMITS = build_limits(Rates(300.0, 300.0, None, None), "sum")


def test_usual_latency_is_known_after_some_releases() -> None:
    usual = UsualTime()
    for _ in range(5):
        assert usual.mean_s == 0.0
        usual = usual.plus(release(5, read_ms=100))
    assert usual.mean_s == pytest.approx(0.02)
    for _ in range(1000):
        usual = usual.plus(release(5, read_ms=50))
    assert usual.mean_s == pytest.approx(0.01, rel=0.01)
    assert usual.releases < 700


@scaled(50)
@given(st.integers(), st.floats(0.5, 20), st.floats(0.05, 0.8), st.integers(5, 200))
def test_deviation_is_that_of_one_request(
    seed: int, mean_ms: float, share: float, requests: int
) -> None:
    random, usual = Random(seed), UsualTime()
    for _ in range(400):
        took_ms = sum(random.gauss(mean_ms, share * mean_ms) for _ in range(requests))
        usual = usual.plus(release(requests, read_ms=max(0, round(took_ms))))
    assert usual.mean_s * 1000 == pytest.approx(mean_ms, rel=0.1)
    assert usual.deviation_s * 1000 == pytest.approx(share * mean_ms, rel=0.25, abs=0.3)


def counted(*releases: Interval) -> WriteCounts:
    """Return releases without their flushes and with them."""
    return tuple(release.without_flushes() for release in releases), releases


def flushed(writes: int, flushes: int) -> Interval:
    """Return a release of writes, and of flushes that the kernel counts among them."""
    return msgspec.structs.replace(
        release(0, inflight=1, flushes=flushes), writes=writes, write_ms=3 * writes
    )


VARYING = tuple(release(reads, read_ms=3 * reads, inflight=1) for reads in (25, 15, 22, 12, 20))
"""Below the limit of 30 in each."""


@pytest.mark.parametrize(
    ("inflight_before", "last", "limits", "is_learned"),
    [
        (1, VARYING, LIMITS, True),
        (1, VARYING, NO_LIMITS, False),  # any load may be at a limit
        (1, VARYING[1:], LIMITS, False),  # too few to know whether they vary
        (1, (*VARYING[:-1], release(28, read_ms=90, inflight=1)), LIMITS, False),
        (1, (*VARYING[:-2], release(31, read_ms=90), VARYING[-1]), LIMITS, False),  # one waited
        (1, (release(20, read_ms=60, inflight=1),) * 5, LIMITS, False),  # of a limiter, perhaps
        (
            1,
            tuple(release(n, read_ms=99, inflight=8) for n in (25, 15, 22, 12, 20)),
            LIMITS,
            False,
        ),
        (1, (*VARYING[:-1], release(20, read_ms=640, inflight=32)), LIMITS, False),  # may be below
        (1, tuple(flushed(n, 8) for n in (25, 15, 22, 12, 20)), LIMITS, True),
        (1, tuple(flushed(20, n) for n in (8, 5, 9, 3, 7)), LIMITS, False),  # all writes count
        (1, tuple(flushed(n + 5, n) for n in (8, 15, 9, 3, 12)), LIMITS, False),  # or others
        (1, (*VARYING[:-1], flushed(28, 20)), LIMITS, False),  # at the limit, if all count
        (1, (*VARYING[:-1], release(20, read_ms=None)), LIMITS, False),
        (0, (release(5, read_ms=15),) * 2, LIMITS, True),  # little load
        (1, (release(5, read_ms=15),) * 2, LIMITS, False),
        (0, (release(5, read_ms=60),) * 2, LIMITS, False),  # they take much of the time
        (0, (release(5, read_ms=15),), LIMITS, False),  # what was before is not known
    ],
)
def test_usual_latency_is_learned_where_nothing_is_throttled(
    inflight_before: int, last: tuple[Interval, ...], limits: Limits, is_learned: bool
) -> None:
    usual = UsualTime().learned(inflight_before, counted(*last), limits, 0.03, 0.1)
    assert usual.releases == is_learned


def test_usual_latency_is_that_of_data_writes() -> None:
    usual = UsualTime()
    for writes in (25, 15, 22, 12, 20) * 20:
        of = msgspec.structs.replace(
            flushed(writes, 8), written_bytes=4096, write_ms=40 + 3 * (writes - 8), flush_ms=40
        )
        light = msgspec.structs.replace(of, inflight=0)
        usual = usual.learned(0, counted(*VARYING, light), LIMITS, 0.03, 0.1)
    assert usual.mean_s == pytest.approx(0.003)
    only_flushes = flushed(8, 8)
    assert usual.learned(0, counted(*VARYING, only_flushes), LIMITS, 0.03, 0.1) == usual


def test_late_samples_of_a_limiter_do_not_vary() -> None:
    """At 110 requests per second, without windows, a late sample has more of them."""
    late = [(11, 0.1), (14, 0.13), (8, 0.07), (11, 0.1), (13, 0.12), (9, 0.08)]
    last = tuple(release(n, read_ms=900, inflight=1, seconds=seconds) for n, seconds in late)
    assert UsualTime().learned(1, counted(*last), LIMITS, 0.03, 0.1) == UsualTime()


def test_requests_that_waited_hardly_change_the_usual_latency() -> None:
    usual = UsualTime()
    for number in range(200):
        took_ms = 900 if number % 20 == 3 else 60
        of = release(20 + 4 * (number % 2), read_ms=took_ms, inflight=1)
        usual = usual.learned(1, counted(*VARYING, of), LIMITS, 0.03, 0.1)
    assert usual.releases == 200
    assert usual.mean_s == pytest.approx(0.003, rel=0.27)
    unknown = UsualTime()
    for number in range(200):
        of = release(20, read_ms=900 if number % 20 == 13 else 60, inflight=1)
        unknown = unknown.learned(1, counted(*VARYING, of), LIMITS, 0.03, 0.1)
    assert unknown.mean_s == pytest.approx(0.003, rel=0.25)


@pytest.mark.parametrize(
    ("waiting", "has_waiting"),
    [
        (release(30, read_ms=95), False),
        (release(30, read_ms=130), True),
        (release(30, read_ms=90, inflight=4), False),  # 0.9 overlap on average
        (release(30, read_ms=90, inflight=5), True),
    ],
)
def test_requests_wait_if_they_take_longer_than_usual(
    waiting: Interval, has_waiting: bool
) -> None:
    usual = UsualTime()
    for number in range(50):
        usual = usual.plus(release(20, read_ms=60 + number % 3))
    assert usual.has_waiting(waiting) is has_waiting


def near_limit(seed: int, load: float, service_s: float, jitter: float) -> Scenario:
    """Return a disk behind a network, whose load comes near its limit by chance."""
    random = Random(seed)
    iops = random.randint(150, 1000)
    return Scenario(
        limiter=Limiter(buckets=summed(iops), window_s=random.choice([0.1, None])),
        loads=(
            Open(per_second=15, poisson=True, active=((0.53, 4.5),)),
            Open(per_second=iops * load, poisson=True, active=((5.0, math.inf),)),
        ),
        medium=Medium(service_s=service_s, jitter=jitter),
        terms=SumTerms(iops=float(iops)),
        seconds=13.0,
        seed=seed,
    )


@pytest.mark.parametrize("service_s", [0.0004, 0.003, 0.01])
@pytest.mark.parametrize(("load", "within_share"), [(0.7, 0.05), (0.8, 0.05), (0.85, 0.15)])
@pytest.mark.parametrize("seed", [1, 2])
def test_load_near_a_limit_is_not_throttled_by_chance(
    seed: int, load: float, within_share: float, service_s: float
) -> None:
    """It was for up to half of the time."""
    found = judged(near_limit(seed, load, service_s, 0.7))
    assert found.throttled_s == pytest.approx(found.true_throttled_s, abs=within_share * 8)


@pytest.mark.parametrize("depth", [4, 16])
def test_latency_under_another_limiter_does_not_hide_the_limit(depth: int) -> None:
    """At first the disk gives 0.6 of what is promised, then that."""
    given, promised = summed(180), summed(300)
    scenario = Scenario(
        limiter=Limiter(buckets=given, window_s=None, changes=((8.0, promised),)),
        loads=(
            Closed(depth=depth, active=((0.53, 7.5),)),
            Closed(depth=1, active=((8.5, math.inf),)),
        ),
        terms=SumTerms(iops=300.0),
        seconds=14.0,
    )
    found = judged(scenario)
    start_s = found.truth[0].start_s
    late = found.between(start_s + 9.0, start_s + 14.0)
    assert {row.limit for row in late} == {"iops"}
    assert found.state.monitored["vdx"].detector.usual.releases < 10
