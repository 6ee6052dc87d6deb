"""Slow seconds: against the promise and what is usual, and never while a limiter throttles."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.catalogue import Charge, Limits
from disksla.state.pipeline.slow import ABOVE_USUAL, FORGOTTEN_IN_S, KNOWN_AFTER_S, SlowTotals
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import UNKNOWN_LIMIT, WindowVerdict

PROMISED, NOTHING_PROMISED = Limits(latency_s=0.001), Limits()
SERVED = WindowVerdict("unproven")
THROTTLED = WindowVerdict("throttled", UNKNOWN_LIMIT)
DAY_S = 24 * 3600.0


def second(now_s: float, latency_s: float, reads: int = 40, request_bytes: int = 8192) -> Interval:
    """Return a second in which reads took this long each."""
    return Interval(
        end_s=now_s,
        seconds=1.0,
        reads=reads,
        writes=0,
        read_bytes=reads * request_bytes,
        written_bytes=0,
        read_ms=round(1000 * latency_s * reads),
        write_ms=0,
        inflight=1,
    )


def after(
    totals: SlowTotals,
    latency_s: float,
    seconds: int,
    from_s: float = 0.0,
    limits: Limits = NOTHING_PROMISED,
    verdict: WindowVerdict = SERVED,
    reads: int = 40,
    request_bytes: int = 8192,
) -> SlowTotals:
    """Return totals after some seconds with this latency."""
    for number in range(1, seconds + 1):
        window = second(from_s + number, latency_s, reads, request_bytes)
        totals = totals.after([window], [verdict], limits)
    return totals


def test_disk_above_its_promised_latency_is_slow() -> None:
    assert after(SlowTotals(), 0.021, 30, limits=PROMISED).above_promise_s == 30
    assert after(SlowTotals(), 0.0011, 30, limits=PROMISED).above_promise_s == 0


def test_slow_requests_are_counted_beside_what_was_expected() -> None:
    above_promise = after(SlowTotals(), 0.021, 30, limits=PROMISED)
    assert (above_promise.reads, above_promise.writes) == (1200, 0)
    assert above_promise.took_s == pytest.approx(1200 * 0.021)
    assert above_promise.expected_s == pytest.approx(1200 * 0.001)
    assert above_promise.compared_s == 30
    usual = after(SlowTotals(), 0.0007, int(KNOWN_AFTER_S) + 60)
    assert usual.reads == 0
    assert 50 <= usual.compared_s <= 60  # what is forgotten counts less than a second
    above_usual = after(usual, 0.02, 20, from_s=660.0)
    assert above_usual.took_s / above_usual.reads == pytest.approx(0.02)
    assert above_usual.expected_s / above_usual.reads == pytest.approx(0.0007, rel=0.2)


def test_promise_is_about_small_requests_that_do_not_queue() -> None:
    assert after(SlowTotals(), 0.021, 9, limits=PROMISED, request_bytes=65536) == after(
        SlowTotals(), 0.021, 9, request_bytes=65536
    )
    assert after(SlowTotals(), 0.1, 9, limits=PROMISED, reads=400).above_promise_s == 0
    charged = Limits(latency_s=0.001, promise_charges=(Charge("iops", 0.025, 0.025),))
    assert after(SlowTotals(), 0.021, 9, limits=charged).above_promise_s == 0


def test_disk_is_slow_against_what_is_usual_after_ten_minutes() -> None:
    usual = after(SlowTotals(), 0.0007, int(KNOWN_AFTER_S) - 30)
    assert after(usual, 0.02, 20, from_s=KNOWN_AFTER_S).above_usual_s == 0
    usual = after(SlowTotals(), 0.0007, int(KNOWN_AFTER_S) + 60)
    assert usual.usual_latencies_s(660.0) == {"read": pytest.approx(0.0007)}
    assert after(usual, 0.02, 20, from_s=660.0).above_usual_s == 20
    assert after(usual, 0.0007 * ABOVE_USUAL * 0.9, 20, from_s=660.0).above_usual_s == 0


def test_other_requests_have_a_usual_latency_of_their_own() -> None:
    usual = after(SlowTotals(), 0.0007, int(KNOWN_AFTER_S) + 60)
    assert after(usual, 0.02, 20, from_s=660.0, request_bytes=2**20).above_usual_s == 0
    assert after(usual, 0.02, 20, from_s=660.0, reads=1600).above_usual_s == 0


def test_nothing_is_said_or_learned_while_a_limiter_throttles() -> None:
    usual = after(SlowTotals(), 0.0007, int(KNOWN_AFTER_S) + 60)
    assert after(usual, 0.5, 600, 660.0, limits=PROMISED, verdict=THROTTLED) is usual


def test_a_few_slow_minutes_do_not_become_usual() -> None:
    usual = after(SlowTotals(), 0.0007, 3600)
    assert after(usual, 0.02, 600, from_s=3600.0).above_usual_s == 600


@given(st.floats(0.0005, 0.002), st.floats(2.0, 10.0))
def test_what_was_usual_is_forgotten_within_a_day(latency_s: float, ratio: float) -> None:
    """A disk that was replaced by a slower one is not slow for ever."""
    usual = after(SlowTotals(), latency_s, 700)
    assert usual.usual_latencies_s(700.0)
    assert not usual.usual_latencies_s(700.0 + DAY_S)
    slower = after(usual, ratio * latency_s, 700, from_s=700 + DAY_S)
    assert slower.above_usual_s == 0
    late_s = slower.usual_latencies_s(1400 + DAY_S)["read"]
    kept = 700 * math.exp(-DAY_S / FORGOTTEN_IN_S) / 700
    assert late_s == pytest.approx(ratio * latency_s, rel=2 * kept * math.log(ratio) + 0.08)


def test_idle_seconds_and_those_without_known_times_change_nothing() -> None:
    totals = SlowTotals()
    idle = second(1.0, 0.0, reads=0)
    assert totals.after([idle], [WindowVerdict("idle")], PROMISED) is totals
    assert after(totals, 0.00001, 5, limits=PROMISED) == SlowTotals(compared_s=5.0)
