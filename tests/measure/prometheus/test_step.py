"""Increases of counters between scrapes."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from disksla.measure.prometheus.query import Series
from disksla.measure.prometheus.step import (
    CounterName,
    Facts,
    Step,
    scrapes_of,
    steps_between,
    within,
)
from disksla.measure.report.step_totals import totals_of
from support.report_series import START_S, TARGET, DiskSeries


def steps_of(series: Iterable[Series]) -> list[Step]:
    return steps_between(scrapes_of(series))


def test_facts_are_those_of_the_scrape() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.does()
    disk.gauges["disksla_limit_read_iops"] = 2000.0
    disk.does()
    first, second = steps_of(disk.series)
    assert first.facts.terms == "vk.ceph-ssd"
    assert first.facts.terms_source == "api"
    assert first.facts.size_bytes == 30 * 2**30
    assert (first.facts.promised.read_iops, second.facts.promised.read_iops) == (1000, 2000)
    assert first.facts.promised_latency_s is None


def test_seconds_by_verdict_and_limit() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.counts(CounterName.THROTTLED_SECONDS, 20.0, "iops")
    disk.counts(CounterName.THROTTLED_SECONDS, 5.0, "machine_iops")
    disk.does(met=10.0, below=3.0, stalled=2.0, throttled=25.0)
    [step] = steps_of(disk.series)
    assert step.seconds == step.assessed_s == 60
    assert step.noncompliant_s == 5
    assert step.is_throttled
    totals = totals_of([step], 60.0)
    assert totals.proven_s == 35, "time of a limit of the machine is no evidence about the disk"
    assert totals.throttled_seconds == {"iops": 20, "machine_iops": 5}


def test_all_counters_of_a_disk_are_reset_together() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.does(2, met=1.0)
    disk.restart()
    disk.now_s += 10
    disk.does(met=50.0)
    step = steps_of(disk.series)[-1]
    assert step.is_reset
    assert step.of(CounterName.VERDICT_SECONDS, "met") == 50, "more than before, but reset"
    assert step.of(CounterName.VERDICT_SECONDS, "idle") == 10


def test_a_counter_that_was_rounded_was_not_reset() -> None:
    idle = TARGET | {"__name__": CounterName.VERDICT_SECONDS, "verdict": "idle"}
    met = TARGET | {"__name__": CounterName.VERDICT_SECONDS, "verdict": "met"}
    values = [(0.0, "86400.123456"), (60.0, "86400.12345"), (120.0, "86460.12345")]
    first, second = steps_of(
        [Series(idle, values), Series(met, [(each, "7") for each, _ in values])]
    )
    assert not first.is_reset
    assert (first.assessed_s, first.facts) == (0, Facts())
    assert second.assessed_s == 60


def test_a_counter_that_appears_started_at_zero() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.counts(CounterName.THROTTLED_SECONDS, 30.0, "unknown")
    disk.counts(CounterName.READS, 1e9)
    disk.does()
    disk.counts(CounterName.THROTTLED_SECONDS, 3600.0, "machine_iops")
    disk.counts(CounterName.IOWAIT_SECONDS, 0.0)
    disk.does(2)
    first, second, third = steps_of(disk.series)
    iowait_s = [totals_of([step], 60.0).throttled_iowait_s for step in (first, second, third)]
    assert iowait_s == [None, None, 0], "what is not counted is not zero"
    assert first.of(CounterName.THROTTLED_SECONDS, "unknown") == 30
    assert first.of(CounterName.READS) == 0, "of others it cannot be said"
    assert not second.is_throttled, "more than the time that has passed"


def test_scrapes_without_a_verdict_are_left_out() -> None:
    reads = Series(TARGET | {"__name__": CounterName.READS}, [(START_S - 60.0, "5")])
    disk = DiskSeries()
    disk.scrape()
    disk.does()
    assert len(steps_of([reads, *disk.series])) == 1
    assert steps_of([reads]) == []
    alone = Series(TARGET | {"__name__": CounterName.VERDICT_SECONDS}, [(1.0, "1")])
    assert steps_of([alone]) == []


_DONE = st.lists(
    st.tuples(
        st.sampled_from((15.0, 60.0, 3600.0)),
        st.sampled_from(("idle", "met", "below", "stalled", "unproven")),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


@given(_DONE, st.integers(1, 29))
def test_increases_add_up(done: list[tuple[float, str, bool]], cut: int) -> None:
    """Seconds are counted once, whatever is reset, and however a time is divided."""
    disk = DiskSeries()
    disk.scrape()
    expected: dict[str, float] = {}
    for every_s, verdict, restarts in done:
        if restarts:
            disk.restart()
        disk.every_s = every_s
        disk.does(**{verdict: every_s})
        expected[verdict] = expected.get(verdict, 0.0) + every_s
    steps = steps_of(disk.series)
    for verdict, seconds in expected.items():
        found = [step.of(CounterName.VERDICT_SECONDS, verdict) for step in steps]
        assert sum(found) <= seconds
        if not any(restarts for _, _, restarts in done):
            assert sum(found) == seconds
    middle_s = steps[min(cut, len(steps)) - 1].end_s - 1
    before = within(steps, START_S, middle_s)
    after = within(steps, middle_s, disk.now_s)
    assert [*before, *after] == steps


@given(_DONE, st.integers(0, 30))
def test_scrapes_may_be_read_in_parts_and_twice(
    done: list[tuple[float, str, bool]], cut: int
) -> None:
    disk = DiskSeries()
    disk.scrape()
    for every_s, verdict, _ in done:
        disk.every_s = every_s
        disk.does(**{verdict: every_s})
    scrapes = scrapes_of(disk.series)
    first, second = scrapes[: cut + 1], scrapes[cut:]
    parts = steps_between(first) + steps_between([*first[-1:], *second])
    assert parts == steps_between(scrapes) == steps_of([*disk.series, *disk.series])
