"""Sums by consumer: for metrics, which are few, and for the last hour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.consumers.consumer_totals import (
    MOST_SERIES,
    NO_CONSUMERS,
    ConsumerTotals,
    Held,
    Usage,
    total_usages,
)
from disksla.kernel.consumers.consumption import NOT_NAMED, Consumption, OwnLimit

A, B = "a.service", "b.service"


def after(
    totals: ConsumerTotals,
    end_s: float,
    amounts: dict[str, float],
    *,
    is_throttled: bool = False,
    may_be_named: frozenset[tuple[str, str]] | None = None,
) -> ConsumerTotals:
    """Return totals after a second in which consumers wrote so many bytes."""
    found = [Consumption("vda", consumer, bytes=amount) for consumer, amount in amounts.items()]
    span_s = (end_s - 1.0, end_s)
    return totals.plus(span_s, found, is_throttled=is_throttled, may_be_named=may_be_named)


def test_sums_and_the_time_that_was_watched() -> None:
    totals = after(after(NO_CONSUMERS, 100.0, {A: 80.0, B: 20.0}), 101.0, {A: 10.0, "kernel": 1.0})
    assert totals.bytes.sums == {(A, ""): 90.0, (B, ""): 20.0, ("kernel", ""): 1.0}
    assert totals.requests.sums == {}
    assert totals.watched_s == 2.0


def test_time_that_two_sources_have_read_counts_once() -> None:
    by_group = Consumption("vda", A, bytes=4096.0)
    by_program = Consumption("vda", A, "postgres", requests=1.0)
    totals = NO_CONSUMERS.plus((10.0, 11.0), [by_group], is_throttled=True, may_be_named=None)
    totals = totals.plus((10.2, 11.5), [by_program], is_throttled=True, may_be_named=None)
    assert totals.watched_s == 1.5
    assert totals.bytes.sums == {(A, ""): 4096.0}
    assert totals.requests.sums == {(A, "postgres"): 1.0}
    [slot] = totals.slots_since(0.0)
    assert (slot.seconds, slot.throttled_s, slot.otherwise) == (1.5, 1.5, {})
    assert slot.throttled == {(A, ""): Usage(None, 4096.0), (A, "postgres"): Usage(1.0, None)}


def test_what_was_used_while_throttled_is_apart() -> None:
    totals = after(NO_CONSUMERS, 100.0, {A: 5.0}, is_throttled=True)
    totals = after(totals, 101.0, {A: 7.0})
    [slot] = totals.slots_since(0.0)
    assert slot.throttled == {(A, ""): Usage(None, 5.0)}
    assert slot.otherwise == {(A, ""): Usage(None, 7.0)}
    assert (slot.seconds, slot.throttled_s) == (2.0, 1.0)


def test_small_consumers_get_no_series() -> None:
    totals = after(NO_CONSUMERS, 100.0, {A: 96.0, B: 4.0})
    assert totals.bytes.sums == {(A, ""): 96.0, ("other", ""): 4.0}
    totals = after(totals, 101.0, {B: 90.0})
    assert totals.bytes.sums == {(A, ""): 96.0, ("other", ""): 4.0, (B, ""): 90.0}


def test_consumers_beyond_five_are_together() -> None:
    amounts = {f"{index}.service": 10.0 for index in range(8)}
    totals = after(after(NO_CONSUMERS, 100.0, amounts), 101.0, amounts)
    assert len(totals.bytes.sums) == MOST_SERIES + 1
    assert totals.bytes.sums["other", ""] == 60.0


def test_series_of_a_silent_consumer_go_to_another() -> None:
    """After two minutes, and not before; then the series begins anew."""
    totals = after(NO_CONSUMERS, 100.0, {f"{index}.service": 10.0 for index in range(5)})
    early = after(totals, 220.0, {B: 1.0})
    assert early.bytes.sums["other", ""] == 1.0
    late = after(totals, 221.0, {B: 1.0})
    assert (B, "") in late.bytes.sums
    assert len(late.bytes.used_s) == MOST_SERIES


def test_series_with_a_program_replaces_that_without() -> None:
    """Requests are those of io.stat, until they are sampled."""
    totals = NO_CONSUMERS
    for end_s, program in ((100.0, ""), (101.0, "dd")):
        found = [Consumption("vda", f"{n}.service", program, requests=9.0) for n in range(4)]
        span_s = (end_s - 1.0, end_s)
        totals = totals.plus(span_s, found, is_throttled=False, may_be_named=None)
    assert ("other", "") not in totals.requests.sums
    assert {(f"{n}.service", "dd") for n in range(4)} < totals.requests.sums.keys()


def test_only_names_that_are_known_have_series_when_there_are_too_many() -> None:
    totals = after(NO_CONSUMERS, 100.0, {A: 5.0, B: 5.0}, may_be_named=frozenset({(A, "")}))
    assert totals.bytes.sums == {(A, ""): 5.0, ("other", ""): 5.0}
    assert totals.used_s == {(A, ""): 100.0}


def test_the_last_five_minutes_by_seconds_and_the_last_hour() -> None:
    totals = NO_CONSUMERS
    for second in range(7206):  # not at the end of a slot
        totals = after(totals, float(second), {A: 1.0})
    recent = totals.slots_since(7206.0 - 300.0)
    assert sum(slot.seconds for slot in recent) == pytest.approx(300.0, abs=10.0)
    hour = totals.slots_since(7206.0 - 3600.0)
    assert sum(slot.seconds for slot in hour) == pytest.approx(3600.0, abs=300.0)
    assert len(totals.recent) + len(totals.hour) < 50


def test_what_was_used_long_ago_is_left_out() -> None:
    totals = after(after(NO_CONSUMERS, 10.0, {A: 1.0}), 1000.0, {B: 1.0})
    [slot] = totals.slots_since(700.0)
    assert slot.otherwise == {(B, ""): Usage(None, 1.0)}


def test_series_of_silent_consumers_can_be_removed() -> None:
    totals = after(after(NO_CONSUMERS, 100.0, {A: 5.0}), 200.0, {B: 5.0}).without_silent(150.0)
    assert (totals.bytes.sums, totals.used_s) == ({(B, ""): 5.0}, {(B, ""): 200.0})


def test_own_limits_are_kept_with_the_last_time() -> None:
    own = OwnLimit("vda", A, "writes", 50.0)
    totals = NO_CONSUMERS.with_own_limit(own, 10.0).with_own_limit(own, 11.0)
    assert totals.held == (Held(own, 11.0),)
    for index in range(9):
        totals = totals.with_own_limit(OwnLimit("vda", str(index), "reads", 1.0), 12.0)
    assert len(totals.held) == 4


CONSUMERS = st.sampled_from([*(f"{index}.service" for index in range(30)), *NOT_NAMED])


@given(st.lists(st.dictionaries(CONSUMERS, st.integers(0, 1000), max_size=20), max_size=30))
def test_nothing_is_lost_and_everything_is_bounded(seconds: list[dict[str, int]]) -> None:
    totals = NO_CONSUMERS
    for end_s, amounts in enumerate(seconds, start=1):
        totals = after(totals, float(end_s), {who: float(each) for who, each in amounts.items()})
    wrote = sum(sum(amounts.values()) for amounts in seconds)
    assert sum(totals.bytes.sums.values()) == wrote
    slots = totals.slots_since(0.0)
    used = total_usages(slot.otherwise for slot in slots)
    assert sum(use.bytes or 0.0 for use in used.values()) == wrote
    assert len(totals.bytes.sums) <= MOST_SERIES + len(NOT_NAMED)
    assert all(len(slot.otherwise) <= 8 + len(NOT_NAMED) for slot in slots)
