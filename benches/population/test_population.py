"""The simulation of the population bench: laws that hold for every disk, and known cases."""

from dataclasses import replace
from itertools import pairwise

import pytest

from disksla.kernel.procfs.diskstats import Counters, parse_line, to_counters
from population import DEVICE, Draw, draw
from population.limiter import LEAKY_DEPTH_S, Burst, Limit
from population.loads import Closed, Commits, Load, Open, Requests, Span
from population.means import found_of
from population.medium import MediumSpec, ServiceTime
from population.sampler import ORIGIN_S, Samples, simulate
from population.simulation import Noise, Spec

pytestmark = pytest.mark.no_coverage

SECONDS = 8.0
WRITES = Requests(1.0)
BUSY = Noise(late_ratio=0.01, preempted_per_second=2, late_sample_ratio=0.02)


def spec(load: Load, limit: Limit | None = None, **changes: object) -> Spec:
    """Return a quick disk with a load."""
    service = ServiceTime("gamma", 0.0005, 0.3)
    medium = MediumSpec(service, ServiceTime("lognormal", 0.002, 0.3), servers=8)
    spans = (Span(load, 0.53, SECONDS),)
    return Spec("test", spans, medium, limit, **({"seconds": SECONDS} | changes))  # type: ignore[arg-type]


def counters(samples: Samples) -> list[Counters]:
    return [to_counters(parse_line(tick.diskstats or "").reading) for tick in samples.ticks]


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    return [draw(7, number, SECONDS) for number in range(24)]


def test_a_draw_is_the_same_every_time(draws: list[Draw]) -> None:
    again = draw(7, 2, SECONDS)
    assert again == draws[2]
    assert again.describe() == draws[2].describe()


def test_disks_without_a_limiter_are_never_throttled(draws: list[Draw]) -> None:
    unlimited = [each for each in draws if each.spec.limit is None]
    assert len(unlimited) == 12
    assert {sum(each.truth) for each in unlimited} == {0.0}


def test_truth_is_at_most_the_time_since_the_tick_before(draws: list[Draw]) -> None:
    assert any(sum(each.truth) > SECONDS / 2 for each in draws)
    for each in draws:
        times_s = [tick.clocks.monotonic_s for tick in each.ticks]
        waited_s = zip(each.truth[1:], pairwise(times_s), strict=True)
        assert all(
            0 <= seconds <= end_s - start_s + 1e-9 for seconds, (start_s, end_s) in waited_s
        )


def test_counters_never_decrease(draws: list[Draw]) -> None:
    for each in draws:
        for before, after in pairwise(counters(each.samples)):
            assert all((new or 0) >= (old or 0) for old, new in zip(before, after, strict=True))


def test_ticks_have_twenty_fields_and_come_every_100_ms(draws: list[Draw]) -> None:
    for each in draws:
        assert {len((tick.diskstats or "").split()) for tick in each.ticks} == {20}
        times_s = [tick.clocks.monotonic_s for tick in each.ticks]
        assert all(0.07 < after - before < 0.13 for before, after in pairwise(times_s))


def test_close_samples_are_between_their_ticks_in_order(draws: list[Draw]) -> None:
    close = [
        (pair, pair[1].close.get(DEVICE, ())) for each in draws for pair in pairwise(each.ticks)
    ]
    assert all(7 <= len(samples) <= 10 for _, samples in close[:-1])
    for (before, after), samples in close:
        times_s = [before.clocks.monotonic_s, *(sample.at_s for sample in samples)]
        assert all(earlier < later for earlier, later in pairwise(times_s))
        assert times_s[-1] <= after.clocks.monotonic_s + 0.001
        assert all(a.writes <= b.writes and a.reads <= b.reads for a, b in pairwise(samples))


@pytest.mark.parametrize("window_s", [0.01, 0.07, 0.10005, 1.0, None])
@pytest.mark.parametrize("load", [Closed(16, WRITES), Open(600, WRITES), Closed(4, WRITES, 0, 1)])
def test_no_more_completes_than_the_limiter_admits(load: Load, window_s: float | None) -> None:
    limit = Limit("iops", 500, window_s)
    busy = replace(spec(load, limit, noise=BUSY), spans=(Span(load, 0.0, SECONDS),))
    samples = simulate(busy)
    for tick, line in zip(samples.ticks, counters(samples), strict=True):
        assert line.written_sectors is not None
        elapsed_s = tick.clocks.monotonic_s - ORIGIN_S
        filled_s = elapsed_s if window_s is None else elapsed_s // window_s * window_s
        at_first = limit.per_second * (window_s or LEAKY_DEPTH_S)
        assert line.written_sectors / 8 <= at_first + limit.per_second * filled_s + 1


def test_a_burst_ends_when_its_credits_do() -> None:
    limit = Limit("iops", 100, 0.1, burst=Burst(1000, credits=1800, initial_ratio=1.0))
    samples = simulate(spec(Closed(32, Requests()), limit))
    reads = [line.reads or 0 for line in counters(samples)]
    assert reads[20] == pytest.approx(1500, abs=200)  # 2.037 s, of which 1.5 with load
    assert reads[-1] - reads[30] == pytest.approx(100 * 4.9, abs=30)
    assert samples.credits[-1] == pytest.approx((0, 0), abs=50)


def test_one_reader_waits_for_what_its_requests_leave_of_a_window() -> None:
    samples = simulate(spec(Closed(1, Requests()), Limit("iops", 300, 0.1)))
    share = sum(samples.truth) / (SECONDS - 0.53)
    assert share == pytest.approx(1 - 300 * 0.0005, abs=0.03)


@pytest.mark.parametrize("write_back", [True, False])
def test_an_empty_flush_counts_as_a_write_where_there_is_a_cache(write_back: bool) -> None:
    samples = simulate(spec(Closed(1, WRITES, flush_every=1), write_back=write_back))
    last = counters(samples)[-1]
    data_writes = (last.written_sectors or 0) // 8
    assert last.flushes == pytest.approx(data_writes if write_back else 0, abs=1)
    assert last.writes == data_writes + (last.flushes or 0)


def test_concurrent_flushes_are_merged_and_commits_are_grouped() -> None:
    several = counters(simulate(spec(Closed(8, WRITES, flush_every=1))))[-1]
    assert (several.flushes or 0) < ((several.writes or 0) - several.written_sectors / 8) / 2  # type: ignore[operator]
    group = counters(simulate(spec(Commits(16, 0.001))))[-1]
    assert group.writes == pytest.approx(2 * (group.flushes or 0), abs=1)


def test_flushes_do_not_wait_for_the_limiter() -> None:
    waiting = Limit("iops", 1, 1.0)
    flushes = Closed(1, WRITES, flush_every=1)
    samples = simulate(spec(flushes, waiting))
    assert counters(samples)[-1].flushes == pytest.approx(SECONDS - 1, abs=1)


def test_means_of_a_limited_and_of_a_free_disk() -> None:
    """Read every 15 s, a deep queue is at its limit, and at none that is three times its load."""
    limited, free = (draw(1, number, 61.0) for number in (2, 3))
    assert {name: at_s for name, _, at_s in found_of(limited, 15)} == {
        "right": pytest.approx(45, abs=1)
    }
    assert {name: at_s for name, _, at_s in found_of(free, 15)}["x3"] == 0
