"""Verdicts beside what the provider says: spans, windows that wait, and names of limits."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.provider_count.comparison import (
    LATE_S,
    LONGEST_SPAN_S,
    LONGEST_WAIT_S,
    Comparison,
    ProviderSpan,
)
from disksla.verdict.interval.interval import Interval
from disksla.verdict.throttling.throttle import LIMIT_KINDS, UNKNOWN_LIMIT, LimitKind, Throttle
from disksla.verdict.throttling.verdict import WindowVerdict

NONE = (0.0,) * len(LIMIT_KINDS)
START = Comparison(0.0, NONE)


def window(
    end_s: float, limit: LimitKind | None, share: float = 1.0
) -> tuple[Interval, WindowVerdict]:
    found = WindowVerdict("idle")
    if limit is not None:
        found = WindowVerdict("throttled", Throttle("base", limit), throttled_share=share)
    return Interval(1, 1, 4096, 4096, end_s, 0.1, 1, 1, 1), found


def windows(
    begin_s: float, end_s: float, limit: LimitKind = "iops", share: float = 1.0
) -> list[tuple[Interval, WindowVerdict]]:
    count = round((end_s - begin_s) * 10)
    return [window(begin_s + (index + 1) / 10, limit, share) for index in range(count)]


def span(begin_s: float, end_s: float, **by_limit: float) -> ProviderSpan:
    throttled_s = tuple(by_limit.get(limit, 0.0) for limit in LIMIT_KINDS[:4])
    return ProviderSpan(begin_s, end_s, throttled_s)


def named(comparison: Comparison) -> dict[str, float]:
    seconds = zip(LIMIT_KINDS, comparison.throttled_s, strict=True)
    return {limit: round(s, 9) for limit, s in seconds if s > 1e-9}


def agreed(comparison: Comparison) -> dict[tuple[str, str], float]:
    by_pair = comparison.agreement.by_pair()
    return {pair: round(s, 9) for pair, s in by_pair.items() if s > 1e-9}


def test_windows_wait_for_the_span_and_for_the_next() -> None:
    waiting = START.with_verdicts(windows(0, 1)).until(1.0, 1.0)
    assert named(waiting) == {}
    first = waiting.with_span(span(0, 1, machine_iops=1)).until(1.1, 1.1)
    assert named(first) == {}
    second = first.with_span(span(1, 2, machine_iops=1)).until(2.1, 2.1)
    assert named(second) == {"machine_iops": 1.0}
    assert agreed(second) == {("iops", "machine_iops"): 1.0}


def test_next_span_is_not_waited_for_without_end() -> None:
    waiting = START.with_verdicts(windows(0, 1)).with_span(span(0, 1, bandwidth=1))
    assert named(waiting.until(1 + LATE_S - 0.01, 4.0)) == {}
    assert named(waiting.until(1 + LATE_S, 4.0)) == {"bandwidth": 1.0}


def test_windows_without_a_span_keep_their_limit() -> None:
    waiting = START.with_verdicts(windows(0, 1))
    assert named(waiting.until(LONGEST_WAIT_S, 9.0)) == {}
    assert named(waiting.until(LONGEST_WAIT_S + 0.5, 9.0)) == {"iops": 0.5}
    assert named(waiting.until(LONGEST_WAIT_S + 1.0, 9.0)) == {"iops": 1.0}


def test_windows_without_a_verdict_are_waited_for() -> None:
    waiting = START.with_span(span(0, 1, iops=1)).with_span(span(1, 2, iops=1)).until(2.1, 0.5)
    assert agreed(waiting) == {}
    decided = waiting.with_verdicts(windows(0, 1)).until(2.2, 1.0)
    assert agreed(decided) == {("iops", "iops"): 1.0}


def test_window_at_the_end_of_a_span_counts_in_both() -> None:
    ends = (0.0, 0.95, 1.95, 2.95)
    comparison = START.with_verdicts(windows(0, 2, share=0.5))
    for begin_s, end_s in pairwise(ends):
        comparison = comparison.with_span(span(begin_s, end_s, iops=0.4))
    after = comparison.until(6.0, 6.0)
    assert named(after) == {"iops": 1.0}
    assert agreed(after) == {
        ("iops", "iops"): 0.825,
        ("iops", "none"): 0.175,
        ("none", "iops"): 0.375,
        ("none", "none"): 1.575,
    }


def test_denied_by_the_provider_three_times_is_unknown() -> None:
    comparison = START.with_verdicts(windows(1, 2))
    for begin_s in range(4):
        comparison = comparison.with_span(span(begin_s, begin_s + 1))
    after = comparison.until(4.0, 4.0)
    assert named(after) == {"unknown": 1.0}
    assert agreed(after)["iops", "none"] == 1.0


@pytest.mark.parametrize("at", [0, 2])
def test_span_before_or_after_may_name_the_limit(at: int) -> None:
    comparison = START.with_verdicts(windows(1, 2))
    for begin_s in range(4):
        counted = {"machine_bandwidth": 0.5} if begin_s == at else {}
        comparison = comparison.with_span(span(begin_s, begin_s + 1, **counted))
    assert named(comparison.until(4.0, 4.0)) == {"machine_bandwidth": 1.0}


def test_short_spans_are_put_together() -> None:
    comparison = START.with_verdicts(windows(0, 1))
    for quarter in range(9):
        comparison = comparison.with_span(span(quarter / 4, (quarter + 1) / 4, iops=0.125))
    assert len(comparison.spans) == 3
    assert agreed(comparison.until(2.2, 2.2)) == {("iops", "iops"): 0.5, ("iops", "none"): 0.5}


def test_span_of_other_length_is_not_compared() -> None:
    long = span(0, LONGEST_SPAN_S + 0.1, bandwidth=1)
    comparison = START.with_verdicts(windows(0, 1)).with_span(long)
    after = comparison.until(20.0, 20.0)
    assert (agreed(after), named(after)) == ({}, {"iops": 1.0})
    short = START.with_verdicts(windows(0, 1)).with_span(span(0, 0.5, bandwidth=0.5))
    later = short.with_span(span(0.7, 1.7)).until(20.0, 20.0)
    assert agreed(later) == {("iops", "none"): 0.3, ("none", "none"): 0.7}


def test_gap_ends_what_waits() -> None:
    waiting = START.with_verdicts(windows(0, 1)).with_span(span(0, 1, bandwidth=1))
    after = waiting.interrupted(1.5)
    assert named(after) == {"iops": 1.0}
    before = after.with_span(span(1, 2, bandwidth=1)).with_span(span(2, 3)).until(9.0, 9.0)
    assert sum(before.agreement.seconds) == pytest.approx(1.0)


def test_windows_before_the_first_reading_keep_their_limit() -> None:
    comparison = Comparison(0.5, NONE).with_verdicts(windows(0, 1))
    compared = comparison.with_span(span(0.5, 1.5, bandwidth=1)).until(9.0, 9.0)
    assert named(compared) == {"iops": 0.5, "bandwidth": 0.5}


def test_limit_that_was_counted_lately() -> None:
    comparison = START.with_span(span(0, 1, iops=0.1)).with_span(span(1, 2, machine_iops=0.5))
    own, machine = Throttle("base", "iops"), Throttle("base", "machine_iops")
    assert comparison.present(own, 2.1) == own
    assert comparison.present(UNKNOWN_LIMIT, 2.1) == machine
    assert comparison.present(own, 1.5 + LATE_S) == machine
    assert comparison.present(UNKNOWN_LIMIT, 2 + LATE_S) == UNKNOWN_LIMIT
    assert START.present(own, 0.0) == own


class Truth:
    """Windows of one disk and readings beside them, at random times, with gaps and resets."""

    def __init__(self, draw: st.DrawFn) -> None:
        limits = st.sampled_from((None, None, *LIMIT_KINDS))
        self.windows = [
            window((index + 1) / 10, draw(limits), draw(st.floats(0, 1)))
            for index in range(draw(st.integers(0, 80)))
        ]
        steps = st.sampled_from((0.1, 0.5, 0.85, 0.99, 1.0, 1.01, 1.3, 2.5))
        self.readings = [0.0]
        while self.readings[-1] < 8:
            self.readings.append(self.readings[-1] + draw(steps))
        self.spans = []
        for begin_s, end_s in pairwise(self.readings):
            seconds = st.floats(0, end_s - begin_s)
            if not draw(st.booleans()) or draw(st.booleans()):
                counted = tuple(draw(seconds) for _ in range(4))
                self.spans.append(ProviderSpan(begin_s, end_s, counted))
        self.decided_after = [draw(st.integers(1, 20)) for _ in self.windows]
        self.gap_at = draw(st.one_of(st.none(), st.integers(0, 80)))


@given(st.composite(Truth)())
def test_nothing_is_lost_and_counters_never_fall(truth: Truth) -> None:
    comparison, waiting, spans = START, list(truth.windows), list(truth.spans)
    delays = list(truth.decided_after)
    before = comparison
    for tick in range(1, 81):
        now_s = tick / 10
        while spans and spans[0].end_s <= now_s:
            comparison = comparison.with_span(spans.pop(0))
        while waiting and waiting[0][0].end_s + delays[0] / 10 <= now_s:
            comparison = comparison.with_verdicts([waiting.pop(0)])
            delays.pop(0)
        decided_to_s = min(now_s, waiting[0][0].end_s - 0.1) if waiting else now_s
        comparison = comparison.until(now_s, decided_to_s)
        if tick == truth.gap_at:
            comparison = comparison.interrupted(now_s)
        assert all(a <= b for a, b in zip(before.throttled_s, comparison.throttled_s, strict=True))
        assert all(
            a <= b
            for a, b in zip(before.agreement.seconds, comparison.agreement.seconds, strict=True)
        )
        assert len(comparison.spans) < 30
        before = comparison
    comparison = comparison.with_verdicts(waiting).until(1e6, math.inf)
    own_s = sum(
        found.throttled_share * each.seconds for each, found in truth.windows if found.throttle
    )
    assert sum(comparison.throttled_s) == pytest.approx(own_s, abs=1e-6)
    assert not comparison.windows
    assert not comparison.spans
    assert sum(comparison.agreement.seconds) <= 8 + 2 * LONGEST_SPAN_S
