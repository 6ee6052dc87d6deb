"""Spans of releases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.cost_model import Charge
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.span import last_seconds, last_span, span_of

intervals = st.builds(
    Interval,
    end_s=st.just(1.0),
    seconds=st.floats(0.01, 0.3),
    reads=st.integers(0, 100),
    writes=st.integers(0, 100),
    read_bytes=st.integers(0, 10**8),
    written_bytes=st.integers(0, 10**8),
    read_ms=st.just(0),
    write_ms=st.just(0),
    inflight=st.integers(0, 64),
)
release_lists = st.lists(intervals, min_size=1, max_size=20).map(tuple)


@given(release_lists, st.integers(0, 20))
def test_span_is_additive(releases: tuple[Interval, ...], cut: int) -> None:
    whole, first, rest = (
        span_of(releases),
        span_of(releases[:cut]),
        span_of(releases[cut:]),
    )
    assert whole.releases == first.releases + rest.releases == len(releases)
    assert whole.seconds == pytest.approx(first.seconds + rest.seconds)
    assert whole.requests == first.requests + rest.requests
    assert whole.bytes == first.bytes + rest.bytes


@given(release_lists)
def test_last_span_is_the_shortest_sufficient(
    releases: tuple[Interval, ...],
) -> None:
    span = last_span(releases)
    assert span == span_of(releases[-span.releases :])
    assert span.requests >= P.enough_requests or span.releases == len(releases)
    shorter = span_of(releases[len(releases) - span.releases + 1 :])
    assert shorter.requests < P.enough_requests


def test_uncertainty_is_one_request_plus_lateness() -> None:
    releases = tuple(Interval(1.0, 0.101, 30, 20, 0, 0, 0, 0, 1) for _ in range(2))
    assert span_of(releases).uncertainty(0.1) == pytest.approx(1 / 100 + 0.01)
    empty = span_of((Interval(1.0, 0.1, 0, 0, 0, 0, 0, 0, 1),))
    assert empty.uncertainty(0.1) == 1.0


def test_load_of_a_span() -> None:
    releases = (Interval(1.0, 0.1, 60, 0, 0, 0, 0, 0, 1), Interval(1.1, 0.1, 0, 0, 0, 0, 0, 0, 1))
    assert span_of(releases).load((Charge("iops", read_s=1 / 300),)) == pytest.approx(1.0)
    assert span_of(releases).load(()) is None


@given(release_lists, st.floats(0.0, 5.0))
def test_last_seconds_are_as_few_as_take_that_long(
    releases: tuple[Interval, ...], seconds: float
) -> None:
    last = last_seconds(releases, seconds)
    assert last == releases[-len(last) :]
    assert len(last) == len(releases) or span_of(last).seconds >= seconds * (1 - 1e-9)
    assert len(last) == 1 or span_of(last[1:]).seconds < seconds * (1 + 1e-9)
