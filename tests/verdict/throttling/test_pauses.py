"""Pauses, the clock with which they end, and what is admitted between them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from disksla.verdict.interval import Interval
from disksla.verdict.throttling.admitted import admitted
from disksla.verdict.throttling.observation import LONGEST_STEP_S
from disksla.verdict.throttling.pauses import ON_TIME_SHARE, Clock, Pause, find_clock, find_pauses

SAMPLE_S = 0.01
SECONDS = 10.0
SERVED_WITHIN_S = 0.002
Span = tuple[float, float]


def step_at(end_s: float, requests: int, inflight: int = 1, seconds: float = SAMPLE_S) -> Interval:
    return Interval(
        end_s=end_s,
        seconds=seconds,
        reads=requests,
        writes=0,
        read_bytes=requests * 4096,
        written_bytes=0,
        read_ms=None,
        write_ms=None,
        inflight=inflight,
        inflight_before=1,
    )


def flush_at(end_s: float, flush_ms: int) -> Interval:
    """Return the step in which a flush completed."""
    step = step_at(end_s, 0)
    return msgspec.structs.replace(step, writes=1, flushes=1, flush_ms=flush_ms)


def sampled(silent: Sequence[Span], random: Random, seconds: float = SECONDS) -> list[Interval]:
    """Return the steps of a disk at which requests are in flight, and nothing completes at times.

    Samples are up to a millisecond late. In a step that is not within a silent time, two requests
    complete.
    """
    times_s = [random.uniform(0, SAMPLE_S)]
    while times_s[-1] < seconds:
        times_s.append(times_s[0] + len(times_s) * SAMPLE_S + random.uniform(0, 0.001))
    return [
        step_at(end_s, 0 if _is_within(start_s, end_s, silent) else 2, seconds=end_s - start_s)
        for start_s, end_s in pairwise(times_s)
    ]


def _is_within(start_s: float, end_s: float, silent: Sequence[Span]) -> bool:
    return any(from_s <= start_s and end_s <= to_s for from_s, to_s in silent)


def limiter_pauses(
    window_s: float, random: Random, *, without: float = 0.0, others: float = 0.0
) -> list[Span]:
    """Return the pauses of a limiter, each from a random time to the end of its window.

    `without` is the share of windows that have none; `others` the share of pauses that are in
    these windows instead, at any time.
    """
    phase_s = random.uniform(0, window_s)
    pauses: list[Span] = []
    for number in range(int(SECONDS / window_s)):
        begin_s = phase_s + number * window_s
        if random.random() >= without:
            used_s = random.uniform(0.05, window_s - 0.03 if window_s < 0.1 else 0.6 * window_s)
            used_s = min(used_s, window_s - 0.031)
            late_s = random.uniform(0, SERVED_WITHIN_S)
            pauses.append((begin_s + used_s, begin_s + window_s + late_s))
        elif random.random() < others:
            at_s = begin_s + random.uniform(0.005, window_s - 0.035)
            pauses.append((at_s, at_s + random.uniform(0.03, 0.04)))
    return pauses


def renewal_pauses(mean_s: float, spread: float, random: Random) -> list[Span]:
    """Return pauses of random lengths, whose ends are apart by random times: a slow disk."""
    pauses: list[Span] = []
    end_s = 0.0
    while True:
        apart_s = random.gauss(mean_s, spread * mean_s)
        apart_s = max(0.035, apart_s)
        end_s += apart_s
        if end_s > SECONDS:
            return pauses
        pauses.append((end_s - random.uniform(0.03, max(0.031, 0.9 * apart_s)), end_s))


def window_of(silent: Sequence[Span], random: Random) -> float | None:
    clock = find_clock(find_pauses(sampled(silent, random)))
    return None if clock is None else clock.window_s


def counts(
    least_s: float, most_s: float, *, without: float = 0.0, others: float = 0.0
) -> tuple[int, int]:
    """Return how many of 30 limiters are found, and how many with another window."""
    found = wrong = 0
    for seed in range(30):
        random = Random(f"{least_s} {seed}")
        window_s = random.uniform(least_s, most_s)
        pauses = limiter_pauses(window_s, random, without=without, others=others)
        measured_s = window_of(pauses, random)
        found += measured_s is not None
        wrong += measured_s is not None and measured_s != pytest.approx(window_s, rel=0.02)
    return found, wrong


RANGES = [(0.04, 0.07), (0.07, 0.12), (0.12, 0.4), (0.4, 0.6)]
"""Of the lengths of windows."""


@pytest.mark.parametrize(("least_s", "most_s"), [*RANGES, (0.6, 1.0)])
def test_windows_of_a_limiter_are_found(least_s: float, most_s: float) -> None:
    assert counts(least_s, most_s) == (30, 0)


@pytest.mark.parametrize(("least_s", "most_s"), RANGES)
def test_some_windows_need_no_pause(least_s: float, most_s: float) -> None:
    assert counts(least_s, most_s, without=0.3) == (30, 0)


@pytest.mark.parametrize(("least_s", "most_s"), RANGES)
def test_one_of_ten_pauses_may_be_of_the_disk(least_s: float, most_s: float) -> None:
    found, wrong = counts(least_s, most_s, without=0.25, others=0.4)
    assert found >= 26
    assert wrong <= 6


@given(st.floats(0.04, 1.0), st.integers())
def test_ends_of_pauses_are_on_time(window_s: float, seed: int) -> None:
    random = Random(seed)
    pauses = find_pauses(sampled(limiter_pauses(window_s, random), random))
    clock = find_clock(pauses)
    assert clock is not None
    numbers = [clock.number(pause) for pause in pauses if pause.end_s > pause.last_s]
    assert numbers.count(None) <= (1 - ON_TIME_SHARE) * len(numbers)
    known = [number for number in numbers if number is not None]
    assert all(after > before for before, after in pairwise(known))


def with_clock(mean_s: float, spread: float, disks: int) -> int:
    """Return how many slow disks have a clock by chance: their pauses end after random times."""
    return sum(
        window_of(renewal_pauses(mean_s, spread, random), random) is not None
        for random in map(Random, range(disks))
    )


@pytest.mark.parametrize("mean_s", [0.06, 0.1, 0.2, 0.4, 1.0])
@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_slow_disk_has_no_clock(mean_s: float, spread: float) -> None:
    """None has one: of 30 disks, of 300 with coverage, and of 3,000 at night."""
    assert with_clock(mean_s, spread, settings().max_examples * 3 // 10) == 0


@pytest.mark.parametrize("mean_s", [0.3, 1.0])
def test_period_that_drifts_is_rarely_a_clock(mean_s: float) -> None:
    """By 3 % of each period. Of shorter ones, that is less than is seen: 3 ms of 100."""
    assert with_clock(mean_s, 0.03, 50) <= 5


def test_pause_begins_after_the_last_completion_and_ends_with_the_next() -> None:
    steps = [step_at(0.01 * number, 0 if 10 < number <= 14 else 1) for number in range(1, 21)]
    (pause,) = find_pauses(steps)
    assert (pause.last_s, pause.end_s, pause.steps) == pytest.approx((0.14, 0.15, 4))
    assert pause.begin_s == pytest.approx(0.095), "half of the step before"
    assert pause.at_s == pytest.approx(0.145)
    assert pause.seconds == pytest.approx(0.05)


def test_pause_that_lasts_has_no_end() -> None:
    (pause,) = find_pauses([step_at(0.01, 1), *[step_at(0.01 * n, 0) for n in range(2, 8)]])
    assert pause.end_s == pause.last_s == pytest.approx(0.07)
    assert find_clock([pause] * 20) is None


def test_time_without_requests_is_no_pause() -> None:
    idle = [step_at(0.01 * number, 0, inflight=0) for number in range(2, 8)]
    assert find_pauses([step_at(0.01, 1), *idle, step_at(0.08, 1)]) == []


@pytest.mark.parametrize("flush_ms", [0, 10, 20])
def test_time_of_flushes_is_not_that_of_a_pause(flush_ms: int) -> None:
    """Flushes transfer no data, and count as writes."""
    flushed = flush_at(0.05, flush_ms)
    silent = [step_at(0.01 * number, 0) for number in range(2, 8)]
    silent[3] = flushed
    (pause,) = find_pauses([step_at(0.01, 1), *silent, step_at(0.08, 1)])
    assert pause.flush_s == flush_ms / 1000
    assert pause.seconds == pytest.approx(0.07 - pause.flush_s)


def test_time_that_is_mostly_flushes_is_no_pause() -> None:
    flushed = flush_at(0.05, 40)
    silent = [step_at(0.01 * number, 0) for number in range(2, 8)]
    silent[3] = flushed
    assert find_pauses([step_at(0.01, 1), *silent, step_at(0.08, 1)]) == []


def test_late_samples_within_a_pause_change_nothing() -> None:
    """Between two samples with the same counters, nothing has completed, however long it was."""
    steps = sampled(limiter_pauses(0.2, Random(1)), Random(1))
    late: list[Interval] = []
    for step in steps:
        if late and late[-1].is_pause and step.is_pause and late[-1].seconds < 5 * SAMPLE_S:
            seconds = late.pop().seconds + step.seconds
            late.append(step_at(step.end_s, 0, seconds=seconds))
        else:
            late.append(step)
    assert len(late) < 0.7 * len(steps)
    spans = [
        [(pause.begin_s, pause.end_s) for pause in find_pauses(each)] for each in (late, steps)
    ]
    assert spans[0] == spans[1]


@given(st.floats(LONGEST_STEP_S + 0.001, 5.0))
def test_nothing_is_known_of_a_time_between_looks(gap_s: float) -> None:
    """A pause that lasts at the end of a look is not that at the start of the next."""
    before = [step_at(0.01 * number, 0) for number in range(1, 6)]
    after = [step_at(0.05 + gap_s + 0.01 * number, 0) for number in range(1, 6)]
    *earlier, last = find_pauses([*before, *after])
    assert all(pause.end_s == pause.last_s == pytest.approx(0.05) for pause in earlier)
    assert last.begin_s == pytest.approx(0.05 + gap_s)


@given(st.floats(0.05, 0.5), st.integers())
def test_clock_is_found_in_two_looks(window_s: float, seed: int) -> None:
    """The disk is looked at for four of ten seconds; windows in between are not counted."""
    random = Random(seed)
    steps = sampled(limiter_pauses(window_s, random), random)
    looks = [step for step in steps if step.end_s < 2 or step.end_s > 8]
    clock = find_clock(find_pauses(looks))
    assert clock is not None
    assert clock.window_s == pytest.approx(window_s, rel=0.02)


def full_windows(pauses: Sequence[Pause], clock: Clock) -> Iterator[int]:
    """Yield the numbers of the windows from the end of a pause on time to that of the next."""
    for before, after in pairwise(pauses):
        first, until = clock.number(before), clock.number(after)
        is_full = after.begin_s < before.at_s + clock.window_s
        if first is not None and until is not None and is_full:
            yield from range(first, until)


@given(
    st.integers(80, 300),
    st.lists(st.integers(3, 60), min_size=20, max_size=30),
    st.sets(st.integers(2, 18), max_size=3),
    st.integers(0, 9),
)
def test_what_is_admitted_is_what_completes_between_pauses(
    window_ms: int, amounts: list[int], without: set[int], phase_ms: int
) -> None:
    """Of windows that have no pause, nothing is counted."""
    steps: list[Interval] = []
    for end_ms in range(phase_ms, window_ms * len(amounts), 10):
        window, late_ms = divmod(end_ms, window_ms)
        nth = late_ms // 10
        requests = (amounts[window] - 2, 1, 1)[nth] if nth < 3 else int(window in without)
        steps.append(step_at(end_ms / 1000, requests))
    clock = Clock(window_ms / 1000, ((-1.0, 100.0, 0.0),))
    pauses = find_pauses(steps)
    assume(sum(clock.number(pause) is not None for pause in pauses) > 10)
    full = admitted(steps, pauses, clock)
    assert full is not None
    windows = list(full_windows(pauses, clock))
    assert full.is_certain
    counted = round(full.served.seconds / clock.window_s)
    assert min(10, len(windows)) <= counted <= len(windows), "the last ones count"
    assert full.served.seconds == pytest.approx(clock.window_s * counted)
    assert full.served.reads == sum(amounts[number] for number in windows[-counted:])
    assert full.served.read_bytes == 4096 * full.served.reads


def test_nothing_is_known_of_windows_that_were_not_used_to_the_end() -> None:
    """Pauses at the end of every third window: the two before it had no pause."""
    ends_s = [10.0 + 0.3 * number for number in range(10)]
    pauses = [
        Pause(
            begin_s=end_s - 0.05,
            last_s=end_s - 0.005,
            end_s=end_s + 0.005,
            at_s=end_s,
            error_s=0.008,
            steps=5,
            flush_s=0.0,
            inflight=1,
        )
        for end_s in ends_s
    ]
    clock = Clock(0.1, ((9.0, 14.0, 10.0),))
    assert all(clock.number(pause) is not None for pause in pauses)
    assert admitted([], pauses, clock) is None
