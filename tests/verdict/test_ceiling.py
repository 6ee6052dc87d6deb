"""The rate of a disk that is throttled, where flushes leave a doubt about it."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits import NO_LIMITS, Charge
from disksla.verdict.ceiling import Ceiling, ceiling_after, is_at_ceiling
from disksla.verdict.interval import Interval
from disksla.verdict.throttle import UNKNOWN_LIMIT, Throttle
from disksla.verdict.verdict import DetectorState, WindowVerdict, classify
from support.releases import release
from support.scenario_verdicts import judged
from support.simulated_limiter import Closed, Limiter, Medium, Scenario, summed

AT_BASE = Throttle("base", "iops")
LIMIT = (Charge("iops", 1 / 400, 1 / 400),)
BEFORE = Ceiling(AT_BASE, 10, 1.0, 300, 300 * 8192)


def throttled(data_writes: int, flushes: int = 10) -> tuple[Interval, ...]:
    """Return releases without flushes that may be empty."""
    return (Interval(1.0, 0.1, 0, data_writes, 0, data_writes * 8192, 0, 98, 1, flushes),) * 10


@pytest.mark.parametrize(
    ("releases", "charges", "iops"),
    [
        (throttled(40), LIMIT, 400),
        (throttled(41), LIMIT, None),
        (throttled(39), LIMIT, None),
        (throttled(41), (), 410),  # at a limit that the terms do not explain
        (throttled(41, flushes=0), LIMIT, 410),
    ],
)
def test_rate_under_flushes_is_known_at_the_limit_only(
    releases: tuple[Interval, ...], charges: tuple[Charge, ...], iops: float | None
) -> None:
    found = ceiling_after(None, AT_BASE, releases, releases, charges, 0.1)
    assert (None if found is None else found.iops) == pytest.approx(iops)
    later = ceiling_after(BEFORE, AT_BASE, releases, releases, charges, 0.1)
    assert later is not None
    assert later.iops == pytest.approx(iops or BEFORE.iops)


def test_ceiling_counts_each_request_after_a_mean_of_spans() -> None:
    ceiling = ceiling_after(None, AT_BASE, throttled(40), throttled(40), LIMIT, 0.1)
    for flushes in (10, 0) * 20:
        releases = throttled(40, flushes)
        ceiling = ceiling_after(ceiling, AT_BASE, releases, releases, LIMIT, 0.1)
    assert ceiling is not None
    assert ceiling.iops == pytest.approx(400)


@given(st.integers(), st.booleans())
def test_one_request_more_or_less_hardly_changes_a_ceiling(seed: int, flushed: bool) -> None:
    """A span of 4 s at 28 IOPS has 111 to 113 requests; one is 0.9 % of it."""
    random = Random(seed)
    charges = (Charge("iops", 1 / 28, 1 / 28),)
    ceiling = None
    for number in range(600):
        waiting = [Interval(4.0 * number, 1.0, 0, 28, 0, 28 * 8192, 0, 900, 1, 10 * flushed)] * 3
        odd = 28 + random.randint(-1, 1)
        waiting.append(msgspec.structs.replace(waiting[0], writes=odd, written_bytes=odd * 8192))
        releases = (waiting[0], *waiting, waiting[0])
        ceiling = ceiling_after(ceiling, AT_BASE, releases, releases, charges, 1.0)
    assert ceiling is not None
    assert ceiling.iops == pytest.approx(28, rel=0.006)


def at_unknown_limit(*requests: int, start_s: float = 0.0) -> tuple[Interval, ...]:
    """Return releases of 0.1 s, one after another."""
    return tuple(
        msgspec.structs.replace(release(each, inflight=8), end_s=start_s + (number + 1) / 10)
        for number, each in enumerate(requests)
    )


def test_ceiling_counts_each_release_once() -> None:
    releases = at_unknown_limit(*[30] * 10)
    ceiling = ceiling_after(None, UNKNOWN_LIMIT, releases, releases, (), 0.1)
    assert ceiling is not None
    assert (ceiling.windows, ceiling.end_s) == pytest.approx((8, 0.9))
    assert ceiling_after(ceiling, UNKNOWN_LIMIT, releases, releases, (), 0.1) == ceiling
    more = at_unknown_limit(*[30] * 12)
    later = ceiling_after(ceiling, UNKNOWN_LIMIT, more, more, (), 0.1)
    assert later is not None
    assert (later.windows, later.end_s) == pytest.approx((10, 1.1))


@pytest.mark.parametrize(
    ("between", "counted"),
    [
        (60, 9),  # a sample has counted two windows of the limiter
        (10, 9),  # it was taken while the limiter let requests pass
        (600, 6),  # no limiter of this rate admits as much
    ],
)
def test_ceiling_counts_what_was_served_while_requests_waited(between: int, counted: int) -> None:
    requests = [*[30] * 10, between, *[30] * 8]
    first = at_unknown_limit(*requests[:10])
    ceiling = ceiling_after(None, UNKNOWN_LIMIT, first, first, (), 0.1)
    waiting = at_unknown_limit(*requests)
    later = ceiling_after(ceiling, UNKNOWN_LIMIT, waiting[11:], waiting, (), 0.1)
    assert later is not None
    assert later.windows == 8 + counted
    begun = waiting[11:]  # requests did not wait before
    without = ceiling_after(ceiling, UNKNOWN_LIMIT, begun, begun, (), 0.1)
    assert without is not None
    assert without.windows == 8 + 6


@pytest.mark.parametrize(
    ("iops", "window_s", "depth"),
    [
        (551, 0.10297, 32),  # each 35th sample has none
        (672, 0.09712, 16),  # each 34th has two
        (107, 0.09714, 16),
        (207, 0.05107, 32),
        (1849, 0.21743, 1),
        (675, 0.24550, 1),
        (1746, 0.04433, 1),
        (1498, 0.16355, 4),
    ],
)
def test_rate_of_an_unknown_limit_is_right_within_one_percent(
    iops: int, window_s: float, depth: int
) -> None:
    """The windows of these limiters are near a multiple of samples; it was wrong by 2 to 6 %."""
    scenario = Scenario(
        limiter=Limiter(buckets=summed(iops), window_s=window_s),
        loads=(Closed(depth=depth),),
        medium=Medium(service_s=0.00005, jitter=0.3),
        seconds=19.0,
    )
    assert judged(scenario).ceiling.iops == pytest.approx(iops, rel=0.01)


REMEMBERED = Ceiling(UNKNOWN_LIMIT, 30, 3.0, 900, 900 * 4096)
"""300 IOPS, by a limiter that no terms explain."""


@pytest.mark.parametrize(
    ("requests", "is_at"),
    [
        ([30] * 5, True),
        ([30] * 32, True),
        ([29] * 5, True),  # one request more or less
        ([27] * 32, False),
        ([33] * 5, False),
        ([35] * 3 + [30] * 5, False),  # no limiter of 300 IOPS admits as much
        ([20] * 3 + [30] * 5, True),  # but less, if there is less to admit
        ([60] + [30] * 5, True),  # in the first, tokens may have been saved
    ],
)
def test_remembered_rate_throttles_what_never_exceeds_it(requests: list[int], is_at: bool) -> None:
    waiting = tuple(release(each, read_ms=960, inflight=32) for each in requests)
    assert is_at_ceiling(REMEMBERED, waiting, 0.1) is is_at


def test_disk_at_a_remembered_rate_is_throttled() -> None:
    """A line must be straight for two seconds; here, a second is enough."""
    detector = DetectorState(ceiling=REMEMBERED)
    decided: list[WindowVerdict] = []
    for number in range(10):
        window = release(30, read_ms=960 + number, inflight=32)
        detector, verdicts = classify(detector, window, NO_LIMITS, 0.03, 0.1)
        decided += verdicts
    assert {verdict.throttle for verdict in decided} == {UNKNOWN_LIMIT}


def test_only_a_rate_that_no_terms_explain_is_remembered() -> None:
    waiting = (release(30, read_ms=960, inflight=32),) * 5
    assert not is_at_ceiling(None, waiting, 0.1)
    assert not is_at_ceiling(BEFORE, waiting, 0.1)
    assert not is_at_ceiling(REMEMBERED, (), 0.1)
