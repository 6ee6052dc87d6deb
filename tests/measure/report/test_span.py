"""Incidents, throttled times and gaps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.measure.prometheus.step import CounterName, Step, scrapes_of, steps_between
from disksla.measure.report.document import Gap
from disksla.measure.report.step_totals import BREAK_S, gaps, spans, throttled_spans, worst_steps
from support.report_series import START_S, DiskSeries


def steps(disk: DiskSeries) -> list[Step]:
    return steps_between(scrapes_of(disk.series))


def incident_spans(all_steps: list[Step]) -> list[list[Step]]:
    return spans(all_steps, lambda step: step.noncompliant_s > 0)


def test_incidents_have_breaks_of_less_than_ten_minutes() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.does(5)
    disk.does(2, below=30.0)
    disk.does(9)
    disk.does(stalled=0.1)
    disk.does(10)
    disk.does(below=1.0)
    disk.does(3)
    first, second = incident_spans(steps(disk))
    assert (first[0].start_s, first[-1].end_s) == (START_S + 300, START_S + 17 * 60 + 0)
    assert len(first) == 12
    assert [step.noncompliant_s for step in second] == [1]


def test_what_was_given_is_of_the_worst_steps() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.does(below=1.0)
    disk.does(2, below=30.0)
    disk.does()
    disk.does(stalled=60.0)
    [incident] = incident_spans(steps(disk))
    assert [step.noncompliant_s for step in worst_steps(incident)] == [30, 30, 60]
    assert [step.noncompliant_s for step in worst_steps(incident[:1])] == [1]


def test_throttled_times_have_their_limits_and_iowait() -> None:
    disk = DiskSeries()
    disk.counts(CounterName.IOWAIT_SECONDS, 0.0)
    disk.scrape()
    disk.does(3)
    for _ in range(2):
        disk.counts(CounterName.THROTTLED_SECONDS, 20.0, "iops")
        disk.counts(CounterName.IOWAIT_SECONDS, 4.0)
        disk.does(throttled=20.0)
    disk.does(20)
    disk.counts(CounterName.THROTTLED_SECONDS, 10.0, "unknown")
    disk.does(throttled=10.0)
    first, second = throttled_spans(steps(disk))
    assert (first.start_timestamp_s, first.end_timestamp_s) == (START_S + 180, START_S + 300)
    assert (first.throttled_seconds, first.throttled_iowait_s) == ({"iops": 40.0}, 8.0)
    assert second.throttled_seconds == {"unknown": 10.0}


def test_gaps_have_their_reasons() -> None:
    disk = DiskSeries()
    disk.now_s += 120
    disk.scrape()
    disk.does(5)
    disk.now_s += 3600  # not scraped, and the daemon lost the time
    disk.does()
    disk.does(2, idle=40.0)  # 20 s of each minute were not sampled
    disk.does(5)
    disk.now_s += 30
    disk.restart()
    disk.does()
    disk.does(2)
    found = gaps(steps(disk), START_S, disk.now_s + 600)
    assert [(gap.unassessed_s, gap.reason) for gap in found] == [
        (120, "no samples"),
        (3600, "no samples"),
        (40, "not sampled"),
        (30, "daemon restarted"),
        (600, "no samples"),
    ]
    assert found[0].start_timestamp_s == START_S
    assert found[-1].end_timestamp_s == disk.now_s + 600


def test_scrapes_that_are_missing_are_no_gap_while_the_daemon_counts() -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.does(5)
    disk.every_s = 3600.0
    disk.does()
    assert gaps(steps(disk), START_S, disk.now_s) == ()
    assert gaps([], 0.0, 60.0) == (Gap(0.0, 60.0, 60.0, "no samples"),)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=20))
def test_incidents_have_every_second_once(runs: list[tuple[bool, int]]) -> None:
    disk = DiskSeries()
    disk.scrape()
    for is_bad, minutes in runs:
        disk.does(minutes, below=6.0 if is_bad else 0.0)
    all_steps = steps(disk)
    incidents = incident_spans(all_steps)
    inside = [step for incident in incidents for step in incident]
    assert [step for step in all_steps if step in inside] == inside
    assert sum(step.noncompliant_s for step in inside) == pytest.approx(
        sum(step.noncompliant_s for step in all_steps)
    )
    for before, after in pairwise(incidents):
        assert after[0].start_s - before[-1].end_s >= BREAK_S
        assert before[0].noncompliant_s > 0
        assert before[-1].noncompliant_s > 0
