"""The share of the time in which limits would have throttled a load: laws, and known cases."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import KIB, MIB
from disksla.measure.advice.demand import Demand, DemandWindow
from disksla.measure.advice.simulation import BUCKET_S, ShareRange, throttled_share
from disksla.promise.catalogue import Bucket, Burst, Limits, Rates, build_limits
from disksla.promise.catalogue.cost_model import Additive, Chunks, CostModel, PerRequest, Work
from disksla.promise.catalogue.limits import BudgetKind

WINDOW_S = 0.1
TOLERANCE = 0.05
COSTS: list[CostModel] = [PerRequest(), Chunks(256 * KIB), Additive(4 * KIB, 4 * MIB)]


def window(reads: float, seconds: float = WINDOW_S, **fields: Any) -> DemandWindow:
    """Return a window of reads of 4 KiB that nothing limited, or with other fields."""
    work = Work(reads, 0, reads * 4096, 0)
    plain = DemandWindow(seconds, work, work, 0.0, False, reads, reads)
    return plain._replace(**fields)


def limited(reads: float, seconds: float, most_requests: float = math.inf) -> DemandWindow:
    return window(
        reads, seconds, throttled_s=seconds, is_limited=True, most_requests=most_requests
    )


def share(limits: Limits, *windows: DemandWindow) -> ShareRange:
    return throttled_share(Demand(windows), limits, TOLERANCE)


def iops(rate: float, burst: Burst | None = None) -> Limits:
    return build_limits(Rates(rate, rate), "sum", burst=burst)


def bursting(rate: float, **fields: Any) -> Limits:
    """Return limits with a burst to ten times the rate, and credits for ten seconds of it."""
    values: dict[str, Any] = {
        "resource": "iops",
        "capacity": 90 * rate,
        "fill_per_second": rate,
        "base_per_second": rate,
        "peak_per_second": 10 * rate,
        **fields,
    }
    return iops(rate, Burst(Rates(10 * rate, 10 * rate), (Bucket(**values),)))


AMOUNTS = st.integers(0, 60)


@st.composite
def windows(draw: st.DrawFn) -> DemandWindow:
    reads, writes, flushes = draw(AMOUNTS), draw(AMOUNTS), draw(AMOUNTS)
    most = Work(reads, writes, reads * 4096, writes * 16384)
    least = msgspec.structs.replace(most, writes=max(0, writes - flushes))
    seconds = draw(st.sampled_from([0.05, 0.1, 0.25, 3.0]))
    is_limited = draw(st.booleans())
    requests = float(reads + writes)
    more = draw(st.sampled_from([1.0, 1.2, 5.0, math.inf])) if is_limited else 1.0
    throttled_s = draw(st.floats(0, seconds)) if is_limited else 0.0
    most_requests = requests * more if requests else 0.0
    return DemandWindow(seconds, least, most, throttled_s, is_limited, requests, most_requests)


DEMANDS = st.lists(windows(), min_size=1, max_size=20).map(lambda each: Demand(tuple(each)))
RATES = st.integers(10, 2000)


@st.composite
def limits_of(draw: st.DrawFn, times: float = 1.0) -> Limits:
    """Return limits of any law."""
    cost = draw(st.sampled_from(COSTS))
    budgets: list[BudgetKind] = (
        ["time_shared"] if isinstance(cost, Additive) else ["sum", "separate"]
    )
    budget = draw(st.sampled_from(budgets))
    read, bandwidth = draw(RATES) * times, draw(RATES) * 16384.0 * times
    write = read if budget == "sum" else draw(RATES) * times
    rates = Rates(read, write, bandwidth, bandwidth)
    return build_limits(rates, budget, cost=cost)


def scaled(limits: Limits, times: float) -> Limits:
    """Return limits that are so many times as high."""
    rates = Rates(*(rate and rate * times for rate in msgspec.structs.astuple(limits.rates)))
    assert limits.budget is not None
    return build_limits(rates, limits.budget)


@given(DEMANDS, limits_of(), st.floats(1, 20))
def test_least_is_never_above_most_and_higher_limits_never_throttle_more(
    demand: Demand, limits: Limits, times: float
) -> None:
    plain, higher = (
        throttled_share(demand, scaled(limits, each), TOLERANCE) for each in (1.0, times)
    )
    for each in (plain, higher, throttled_share(demand, limits, TOLERANCE)):
        assert 0 <= each.least <= each.most + 1e-9 <= 1 + 2e-9
    assert higher.least <= plain.least + 1e-9
    assert higher.most <= plain.most + 1e-9
    known = Demand(tuple(each._replace(most_requests=each.requests) for each in demand.windows))
    assert throttled_share(known, scaled(limits, 1e5), TOLERANCE) == (0.0, 0.0)


@given(DEMANDS, RATES, st.sampled_from(["use", "excess", "constant"]), st.floats(0.01, 10))
def test_credits_never_throttle_more(demand: Demand, rate: int, drain: Any, fill: float) -> None:
    plain = throttled_share(demand, iops(rate), TOLERANCE)
    fill_per_second = rate if drain == "use" else rate * fill
    burst = bursting(rate, drain=drain, fill_per_second=fill_per_second)
    with_credits = throttled_share(demand, burst, TOLERANCE)
    assert with_credits.least <= plain.least + 1e-9
    assert with_credits.most <= plain.most + 1e-9


@given(DEMANDS)
def test_without_limits_or_windows_nothing_throttles(demand: Demand) -> None:
    assert throttled_share(demand, Limits(), TOLERANCE) == (0.0, 0.0)
    assert share(iops(1)) == (0.0, 0.0)


def test_a_reader_with_a_fifth_of_the_time_waits_four_fifths() -> None:
    """1000 reads in a second; under 200 per second it reads for 0.2 s of each second."""
    least, most = share(iops(200), *[window(100)] * 100)
    assert least == pytest.approx(0.8, abs=0.01)
    assert most == 1.0


def test_a_backlog_waits_into_the_time_after_it() -> None:
    """20 too many in each of 10 windows need the limit for 7 more windows, and are not lost."""
    least, most = share(iops(300), *[window(50)] * 10, *[window(0)] * 30)
    assert least == pytest.approx((10 * 0.4 - 0.6) / 40, abs=0.02)
    assert most == pytest.approx((10 + 200 / 30) / 40)


def test_a_load_that_makes_up_for_it_may_wait_for_more_of_the_time() -> None:
    """All is done within the window; later, it takes ten times as long."""
    assert share(iops(30), window(0), window(30)).most == pytest.approx(0.9 / 1.1)


def test_tokens_of_a_window_are_saved_at_one_end_only() -> None:
    least, most = share(iops(300), window(0), window(60))
    assert least == 0.0
    assert most == pytest.approx(0.5)
    assert BUCKET_S == WINDOW_S


@pytest.mark.parametrize(
    ("rate", "rows", "expected"),
    [
        # Limits that throttled throttle as long again.
        (300, (limited(3000, 10.0), window(0, 10.0)), pytest.approx((0.5, 0.5), abs=0.05)),
        # What a throttled load would ask for is between nothing more and its depth.
        (400, (limited(300, 1.0, 900), window(0, 1.0)), (0.0, 0.5)),
        (950, (limited(300, 1.0, 900), window(0, 1.0)), (0.0, 0.0)),
        # Lower limits make it wait longer.
        (100, (limited(300, 1.0), window(0, 1.0)), pytest.approx((0.5, 1.0), abs=0.01)),
    ],
)
def test_a_load_that_was_throttled(
    rate: float, rows: tuple[DemandWindow, ...], expected: object
) -> None:
    assert share(iops(rate), *rows) == expected


def test_full_credits_and_no_credits_are_the_two_ends() -> None:
    rows = [window(50)] * 100  # 500 per second for 10 s
    assert share(bursting(100), *rows) == (0.0, 1.0)


def test_credits_run_out() -> None:
    """400 per second drain 9000 I/Os at 300 per second: 30 s."""
    rows = [window(400, 1.0)] * 60
    least, _ = share(bursting(100), *rows)
    assert least == pytest.approx(0.75 * 0.5, abs=0.01)


def test_credits_are_saved_while_the_disk_is_idle() -> None:
    rows = [window(0, 120.0), window(4000, 10.0)]
    assert share(bursting(100), *rows).most == 0.0
    few = share(bursting(100), window(0, 5.0), window(4000, 10.0))
    assert few.most == pytest.approx(25 / (15 + 25))


def test_a_reserve_with_its_own_fill_rate_pays_for_the_excess() -> None:
    rows = [window(150, 1.0)] * 100
    least, most = share(bursting(100, drain="excess", fill_per_second=50, capacity=1), *rows)
    assert (least, most) == (0.0, 0.0)
    least, most = share(bursting(100, drain="excess", fill_per_second=25, capacity=1), *rows)
    assert least == pytest.approx(25 / 125, abs=0.01)
    assert most == 1.0


def test_a_burst_that_is_sold_by_its_length_drains_at_any_load_above_the_baseline() -> None:
    rows = [window(101, 1.0)] * 10
    limits = bursting(100, drain="constant", fill_per_second=1, capacity=900)
    assert share(limits, *rows, window(0, 1.0)).least == 0.0
    drained = share(limits, *rows, *rows)
    assert 0 < drained.least < drained.most


def test_a_backlog_may_be_served_while_more_arrives() -> None:
    limits = bursting(100, drain="excess", fill_per_second=100, capacity=1)
    rows = [window(300, 1.0), window(150, 1.0), window(150, 1.0), window(110, 1.0)]
    assert share(limits, *rows).most == 0.75


@pytest.mark.parametrize(("length", "most"), [("unlimited", 0.0), ("unknown", 1.0)])
def test_a_burst_without_credits(length: Any, most: float) -> None:
    limits = iops(100, Burst(Rates(1000, 1000), length=length))
    assert share(limits, *[window(50)] * 10) == (0.0, most)


def test_limits_of_bandwidth_have_their_own_bucket() -> None:
    limits = build_limits(Rates(1000, 1000, 40960, 40960), "sum")
    least, most = share(limits, *[window(20)] * 10)
    assert least == pytest.approx(19 / 20, abs=0.05)
    assert most == 1.0


def test_requests_wait_for_several_limits_at_the_same_time() -> None:
    """The backlogs of both limits begin together; the longer one counts."""
    rows = [window(100), window(0, 1.0)]
    both = build_limits(Rates(500, 500, 2000 * 4096, 2000 * 4096), "sum")
    half = build_limits(Rates(500, 500, 750 * 4096, 750 * 4096), "sum")
    assert share(both, *rows) == share(half, *rows) == share(iops(500), *rows)
