"""The verdict on each window."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disksla.base.units import GIB, KIB, MIB
from disksla.kernel.procfs import CloseSample
from disksla.promise.catalogue.limits import (
    NO_LIMITS,
    Conditions,
    Limits,
    OneUnit,
    PromisedShare,
    Rates,
    build_limits,
)
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import Settings
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import WindowRecord
from disksla.verdict.interval.interval import Interval
from disksla.verdict.throttling.pauses import LONGEST_WINDOW_S
from disksla.verdict.throttling.promise import is_limited_below
from disksla.verdict.throttling.signs import SIGNS, Sign
from disksla.verdict.throttling.throttle import Ceiling, MachineWindow, SharedWindow, Throttle
from disksla.verdict.throttling.verdict import DetectorState, WindowVerdict, after_gap, classify
from population import draw
from population.judging import judged as judged_ticks
from population.judging import settings_of
from support.close_recordings import NAMES, close_recording, judged
from support.examples import scaled
from support.scenario_verdicts import judged as judged_scenario
from support.scenarios import SCENARIOS
from support.simulated_limiter import Closed, Limiter, Medium, Scenario, summed

LIMITS = build_limits(Rates(1000.0, 1000.0, 100e6, 100e6), "sum")
TOLERANCE = 0.03
TICK_S = 0.1
START_S = 100.0
LONGEST_S = 2.2
"""From the end of a window to its verdict."""
NO_SAMPLES: tuple[CloseSample, ...] = ()
Seen = tuple[Interval, tuple[CloseSample, ...]]


def window(
    reads: int = 60, inflight: int = 32, read_ms: int | None = 3200, request_bytes: int = 4096
) -> Interval:
    busy_ms = 100 if inflight else min(100, read_ms or 0)
    read_bytes = reads * request_bytes
    return Interval(reads, 0, read_bytes, 0, 0.0, TICK_S, read_ms, 0, inflight, busy_ms=busy_ms)


def at_their_times(windows: Iterable[Interval]) -> list[Seen]:
    """Return windows that follow each other, without close samples."""
    end_s, inflight, seen = START_S, 0, list[Seen]()
    for each in windows:
        end_s += each.seconds
        window = msgspec.structs.replace(each, end_s=round(end_s, 6), inflight_before=inflight)
        seen.append((window, NO_SAMPLES))
        inflight = each.inflight
    return seen


def uneven(mean: int, count: int, seed: int = 1, inflight: int = 32) -> list[Interval]:
    """Return windows with a random number of reads, half as many to half as many again."""
    random = Random(seed)
    return [window(random.randint(mean // 2, mean + mean // 2), inflight) for _ in range(count)]


def classified(
    seen: Iterable[Seen],
    limits: Limits = NO_LIMITS,
    detector: DetectorState | None = None,
    before_each: Callable[[DetectorState], DetectorState] = lambda state: state,
) -> tuple[list[tuple[Interval, WindowVerdict]], DetectorState]:
    """Return the windows that are decided with their verdicts, and the last state.

    Assert that each has exactly one verdict, the oldest first, in time.
    """
    state = detector or DetectorState()
    found: list[tuple[Interval, WindowVerdict]] = []
    waiting = [each.window for each in state.pending]
    for each, close in seen:
        state, verdicts = classify(before_each(state), each, close, limits, TOLERANCE)
        waiting.append(each)
        decided, waiting = waiting[: len(verdicts)], waiting[len(verdicts) :]
        found += zip(decided, verdicts, strict=True)
        assert [pending.window for pending in state.pending] == waiting
        assert all(each.end_s - old.end_s <= LONGEST_S for old in waiting)
    return found, state


def verdicts(windows: Iterable[Interval], limits: Limits = NO_LIMITS) -> list[str]:
    """Return the verdicts on all windows; an idle second follows them."""
    listed = list(windows)
    ended = [*listed, *[window(0, 0, 0)] * 12]
    found, _ = classified(at_their_times(ended), limits)
    return [each.verdict for _, each in found[: len(listed)]]


# Each window has one verdict.

amounts = st.tuples(
    st.sampled_from([0, 0, 0, 30, 31, 60, 100]),
    st.sampled_from([0, 1, 16]),
    st.sampled_from([0, 0, 0, 1, 15, 30, 60]),
)


@scaled(50)
@given(st.lists(amounts, max_size=120), st.booleans(), st.floats(0.09, 0.11))
def test_each_window_gets_one_verdict_within_two_seconds(
    drawn: list[tuple[int, int, int]], has_terms: bool, seconds: float
) -> None:
    limits = build_limits(Rates(300.0, 300.0), "sum") if has_terms else NO_LIMITS
    seen = at_their_times(
        msgspec.structs.replace(
            window(reads, inflight, 3200 if reads else 0),
            seconds=seconds,
            writes=flushes,
            flushes=flushes,
        )
        for reads, inflight, flushes in drawn
    )
    found, _ = classified(seen, limits)
    for each, verdict in found:
        assert 0 < verdict.throttled_share <= 1
        throttled_s = each.seconds * verdict.throttled_share
        assert 0 < throttled_s <= each.seconds
        assert verdict.otherwise != "throttled"
        assert (verdict.verdict == "throttled") == (verdict.throttle is not None)
        assert verdict.wait_s >= 0


@cache
def windows_of(name: str) -> list[Seen]:
    return close_recording(name).windows()


@pytest.mark.parametrize("name", NAMES)
def test_each_window_of_a_recording_gets_one_verdict(name: str) -> None:
    found, _ = classified(windows_of(name), LIMITS)
    assert len(found) >= len(windows_of(name)) - LONGEST_S / TICK_S


@pytest.mark.parametrize("name", ["iops-300-deep", "iops-300-paused", "unlimited-stalled"])
def test_seconds_of_all_verdicts_add_up(name: str) -> None:
    state = judged_scenario(SCENARIOS[name]).state
    (disk_state,) = state.monitored.values()
    totals = disk_state.totals
    waiting_s = sum(each.seconds for each in totals.undecided.windows)
    by_verdict_s = sum(totals.verdict_totals.seconds)
    not_updated_s = state.assessed.seconds - totals.complete_to.seconds
    assert by_verdict_s + waiting_s + not_updated_s == pytest.approx(state.assessed.seconds)
    assert sum(totals.verdict_totals.throttled_s) == pytest.approx(
        totals.verdict_totals.seconds[3], abs=1e-9
    )


# A verdict depends on nothing that is older than ten seconds.


def rows_of(ticks: Sequence[Tick], settings: Settings) -> dict[float, WindowRecord]:
    """Return the decided windows by their end, of a detector that starts at the first tick."""
    rows = judged_ticks(ticks, settings, always_looked_at=True)
    return {row.monotonic_s: row for row in rows if row.verdict is not None}


def assert_that_starts_agree(
    ticks: Sequence[Tick], settings: Settings, starts: Iterable[int]
) -> int:
    """Compare detectors that start at these ticks; return how many windows were compared."""
    disks, compared = ticks[0].disks, 0
    whole = rows_of(ticks, settings)
    for start in starts:
        first = msgspec.structs.replace(ticks[start], disks=disks)
        from_s = first.clocks.monotonic_s + 10
        for end_s, row in rows_of([first, *ticks[start + 1 :]], settings).items():
            if end_s < from_s:
                continue
            if end_s not in whole:  # not decided yet
                assert row.verdict == "idle"
                continue
            other = whole[end_s]
            assert (row.verdict, row.limit, row.level, row.throttled_s) == (
                *(other.verdict, other.limit, other.level, other.throttled_s),
            )
            compared += 1
    return compared


@pytest.mark.parametrize("number", [0, 1, 2, 7, 22, 25])
def test_simulated_disk_is_judged_the_same_from_every_start(number: int) -> None:
    drawn = draw(11, number, 30.0)
    limit = drawn.spec.limit
    terms = SumTerms(iops=limit.per_second) if limit is not None else SumTerms(iops=300.0)
    starts = Random(number).sample(range(1, 180), max(2, settings().max_examples // 10))
    assert assert_that_starts_agree(drawn.ticks, settings_of(terms), starts) > 40


@pytest.mark.parametrize("name", NAMES)
def test_recorded_disk_is_judged_the_same_from_every_start(name: str) -> None:
    recording = close_recording(name)
    terms = recording.terms or SumTerms(iops=300.0)
    assert assert_that_starts_agree(recording.ticks(), settings_of(terms), [13]) > 5


OTHER_CEILING = Ceiling(Throttle("base", "iops"), 123.0, 4e5, 0.07)


@pytest.mark.parametrize("name", NAMES)
def test_ceiling_is_read_by_no_verdict(name: str) -> None:
    limits = build_limits(Rates(300.0, 300.0), "sum")
    usual, _ = classified(windows_of(name), limits)
    other, _ = classified(
        windows_of(name),
        limits,
        before_each=lambda state: msgspec.structs.replace(state, ceiling=OTHER_CEILING),
    )
    assert usual == other


# Verdicts without a limiter.


def test_window_without_requests_is_idle_at_once() -> None:
    found, state = classified(at_their_times([window(0, 0, 0)] * 25))
    assert [each.verdict for _, each in found] == ["idle"] * 25
    assert state == DetectorState()


def test_disk_is_idle_at_once_again_after_a_load() -> None:
    _, state = classified(at_their_times([*uneven(60, 30), *[window(0, 0, 0)] * 30]))
    assert not state.pending


@given(st.lists(st.sampled_from([0, 0, 20, 60]), min_size=30, max_size=60))
def test_window_is_idle_if_nothing_is_in_flight_and_none_completes(reads: list[int]) -> None:
    found = verdicts(window(each, 0, 10 if each else 0) for each in reads)
    assert [each == "idle" for each in found] == [not each for each in reads]


@pytest.mark.parametrize("inflight", [1, 16])
@pytest.mark.parametrize("silent", [1, 5, 10, 11, 12, 13, 25, 40])
def test_long_silence_is_a_stall_from_its_start(silent: int, inflight: int) -> None:
    windows = [*uneven(60, 7), *[window(0, inflight, 0)] * silent, *uneven(60, 7)]
    found = verdicts(windows)
    is_stall = silent * TICK_S > LONGEST_WINDOW_S + 1e-9
    assert set(found[7 : 7 + silent]) == ({"stalled"} if is_stall else {"unproven"})
    assert {*found[:7], *found[7 + silent :]} == {"unproven"}


def test_silence_that_is_broken_by_one_request_is_no_stall() -> None:
    silent = [window(0, 1, 0)] * 10
    assert "stalled" not in verdicts([*silent, window(1, 1, 1000), *silent, window(1, 1, 1000)])


def flushes_only(inflight: int) -> Interval:
    """Return a window in which flushes completed and, as is known exactly, no data write."""
    flushed = Interval(0, 40, 0, 0, 0.0, TICK_S, 0, 90, inflight, flushes=40, busy_ms=90)
    return flushed.with_data_writes(0)


@pytest.mark.parametrize("inflight", [0, 1])
def test_disk_that_only_flushes_is_neither_idle_nor_stalled(inflight: int) -> None:
    as_the_kernel = msgspec.structs.replace(
        flushes_only(inflight), writes=40, flushes=40, is_exact=False, excluded_flushes=0
    )
    assert set(verdicts([as_the_kernel] * 30)) == {"unproven"}


def test_disk_that_only_flushes_is_not_stalled_where_data_writes_are_counted() -> None:
    assert set(verdicts([flushes_only(1)] * 30)) == {"unproven"}


def test_load_at_the_promise_is_met() -> None:
    assert set(verdicts([window(100, 0, 10)] * 20, LIMITS)) == {"met"}
    assert set(verdicts([window(90, 0, 10)] * 20, LIMITS)) == {"unproven"}
    above = [msgspec.structs.replace(each, reads=each.reads + 60) for each in uneven(80, 40)]
    assert set(verdicts(above, LIMITS)) == {"met"}


def test_promise_by_request_size() -> None:
    limits = msgspec.structs.replace(
        LIMITS, promised_shares=(PromisedShare(4 * KIB, 1.0), PromisedShare(16 * KIB, 0.5))
    )
    assert set(verdicts([window(50, 0, 10, 16 * KIB)] * 11, limits)) == {"met"}
    assert set(verdicts([window(50, 0, 10)] * 11, limits)) == {"unproven"}
    assert set(verdicts(of_size(30, 32, 16 * KIB), limits)[10:]) == {"below"}
    assert set(verdicts(of_size(30, 32, 64 * KIB), limits)) == {"unproven"}


# Below the promise.


def of_size(reads: int, inflight: int, request_bytes: int) -> list[Interval]:
    """Return the windows of three seconds from START_S, which are not even."""
    half = reads // 2
    return [
        window(reads + (half if number % 3 else -half), inflight, 3200, request_bytes)
        for number in range(29)
    ]


@pytest.mark.parametrize(
    ("mean", "inflight", "expected"),
    [(60, 32, "below"), (60, 29, "below"), (60, 28, "unproven"), (60, 16, "unproven")],
)
def test_deep_queue_that_is_served_at_less_is_below(
    mean: int, inflight: int, expected: str
) -> None:
    found = verdicts(uneven(mean, 60, inflight=inflight), LIMITS)
    assert set(found[10:50]) == {expected}
    assert "below" not in found[:8], "the load began within this second"


@pytest.mark.parametrize(
    ("mean", "expected"), [(60, "below"), (95, "below"), (105, "unproven"), (120, "below")]
)
def test_load_that_gets_what_one_allocation_unit_is_promised_is_not_below(
    mean: int, expected: str
) -> None:
    """Of four units, each with 1000 IOPS: a load within one may get no more."""
    of_all = build_limits(Rates(4000.0, 4000.0, 400e6, 400e6), "sum")
    unit = OneUnit(GIB, LIMITS.rates, LIMITS.promise_charges, LIMITS.enforced_charges)
    limits = msgspec.structs.replace(of_all, one_unit=unit)
    windows = [window(mean + (20 if number % 2 else -20), 32) for number in range(60)]
    assert set(verdicts(windows, limits)[10:50]) == {expected}
    assert set(verdicts(windows, of_all)[10:50]) == {"below"}


def test_nothing_is_below_without_a_promise() -> None:
    assert set(verdicts(uneven(60, 60))) == {"unproven"}


@given(st.integers(10, 90), st.integers(0, 64), st.integers())
def test_below_needs_a_rate_and_a_depth(mean: int, inflight: int, seed: int) -> None:
    found = set(verdicts(uneven(mean, 60, seed, inflight), LIMITS))
    if inflight < 28:
        assert "below" not in found
    if inflight >= 32 and mean <= 70:
        assert "below" in found


def test_bandwidth_promise_has_its_own_queue_depth() -> None:
    limits = msgspec.structs.replace(LIMITS, bandwidth_conditions=Conditions(MIB, 8))
    large = of_size(5, 8, MIB)
    assert set(verdicts(large, limits)[10:]) == {"below"}
    assert set(verdicts(large, LIMITS)) == {"unproven"}
    assert set(verdicts(of_size(60, 8, 4 * KIB), limits)) == {"unproven"}


@pytest.mark.parametrize(
    ("request_bytes", "inflight", "expected"),
    [
        (MIB - 64 * KIB, 9, "below"),  # sequential requests, split and merged
        (MIB // 2, 16, "below"),
        (MIB // 2, 8, "unproven"),
        (MIB // 8, 64, "below"),
        (MIB // 8, 32, "unproven"),
        (MIB // 16, 128, "unproven"),
    ],
)
def test_bandwidth_promise_applies_to_split_requests(
    request_bytes: int, inflight: int, expected: str
) -> None:
    limits = msgspec.structs.replace(
        LIMITS,
        promised_shares=(PromisedShare(16 * KIB, 0.5),),
        bandwidth_conditions=Conditions(MIB, 8),
    )
    pieces = of_size(2 * MIB // request_bytes, inflight, request_bytes)
    assert set(verdicts(pieces, limits)[10:]) == {expected}


# Simulated disks.


def by_second(scenario: Scenario, from_s: float, to_s: float) -> set[str | None]:
    found = judged_scenario(scenario)
    start_s = found.truth[0].start_s
    return {row.verdict for row in found.between(start_s + from_s, start_s + to_s)}


def below_its_promise(depth: int) -> Scenario:
    return Scenario(
        limiter=Limiter(buckets=summed(600)),
        loads=(Closed(depth=depth),),
        terms=SumTerms(iops=1000.0),
    )


def test_limiter_below_the_promise_shows_that_depth_is_not_the_reason() -> None:
    found = judged_scenario(below_its_promise(8))
    assert by_second(below_its_promise(8), 2, 9) == {"below"}
    assert not [row for row in found.rows if row.limit]
    assert found.ceiling.iops == pytest.approx(600, rel=0.02)


def test_limiter_below_the_promise_may_be_that_of_a_machine_that_is_not_known() -> None:
    seen = windows_of(WITH_WINDOWS)
    terms = close_recording(WITH_WINDOWS).terms
    assert terms is not None
    assert terms.iops is not None
    iops = terms.iops
    limits = build_limits(Rates(2 * iops, 2 * iops), "sum")
    for is_known, expected in ((True, {"below"}), (False, {"throttled", "unproven"})):
        state, found = DetectorState(), []
        for window, close in seen:
            machine = MachineWindow(is_known=is_known)
            state, verdicts = classify(state, window, close, limits, TOLERANCE, machine)
            found += [each.verdict for each in verdicts]
        assert set(found[50:]) == expected


def test_no_limiter_is_below_a_promise_that_is_for_others_or_for_smaller_requests() -> None:
    assert is_limited_below(window(40), LIMITS)
    assert not is_limited_below(window(40), msgspec.structs.replace(LIMITS, shared_by="a group"))
    small = msgspec.structs.replace(LIMITS, promised_shares=(PromisedShare(4 * KIB, 1.0),))
    assert not is_limited_below(window(2, request_bytes=MIB), small)
    of_four = build_limits(Rates(4000.0, 4000.0, 400e6, 400e6), "sum")
    unit = OneUnit(GIB, LIMITS.rates, LIMITS.promise_charges, LIMITS.enforced_charges)
    units = msgspec.structs.replace(of_four, one_unit=unit)
    assert is_limited_below(window(60), units)
    assert not is_limited_below(window(105), units)


@pytest.mark.parametrize(
    ("windows", "second", "expected"),
    [
        (uneven(60, 40), -1, {"throttled"}),
        (uneven(60, 40), -2, {"unproven"}),
        ([flushes_only(0)] * 40, -1, {"unproven"}),
    ],
)
def test_limit_of_the_group_applies_to_the_same_second_and_to_data(
    windows: list[Interval], second: int, expected: set[str]
) -> None:
    state, found = DetectorState(), []
    for window, close in at_their_times(windows):
        throttle = Throttle("base", "machine_iops")
        group = SharedWindow(int(window.end_s) + second, throttle, waited_share=1.0)
        machine = MachineWindow(group)
        state, verdicts = classify(state, window, close, NO_LIMITS, TOLERANCE, machine)
        found += [each.verdict for each in verdicts]
    assert set(found[10:]) == expected


def test_deep_queue_at_a_limiter_below_the_promise_is_below() -> None:
    assert by_second(below_its_promise(32), 2, 9) == {"below"}
    assert judged_scenario(below_its_promise(32)).ceiling.iops == pytest.approx(600, rel=0.02)


@pytest.mark.parametrize("name", ["iops-1000-stalled", "unlimited-stalled"])
def test_stall_and_its_end_are_detected(name: str) -> None:
    assert by_second(SCENARIOS[name], 4.35, 5.5) == {"stalled"}
    others = by_second(SCENARIOS[name], 0, 4.0) | by_second(SCENARIOS[name], 5.75, 7.5)
    assert "stalled" not in others


@pytest.mark.parametrize("name", ["burst-then-base", "burst-in-turns"])
@pytest.mark.parametrize("phase_s", [0.037, 0.09])
def test_end_of_a_burst_is_no_unknown_limit(name: str, phase_s: float) -> None:
    found = judged_scenario(replace(SCENARIOS[name], sampler_phase_s=phase_s))
    assert {row.level for row in found.rows if row.throttled_s} == {"burst", "base"}
    ceilings = {row.ceiling_iops for row in found.rows if row.ceiling_iops is not None}
    assert ceilings
    assert all(each == pytest.approx(2000 if each > 1000 else 300, 0.01) for each in ceilings)


def test_end_of_a_burst_at_rates_that_are_not_in_the_terms_is_unknown() -> None:
    limiter = Limiter(buckets=summed(400, peak_per_second=1500, capacity=4000))
    found = judged_scenario(replace(SCENARIOS["burst-then-base"], limiter=limiter))
    assert {row.level for row in found.rows if row.throttled_s} == {"unknown"}


def test_load_between_baseline_and_burst_is_met() -> None:
    assert by_second(SCENARIOS["unlimited-deep-above-its-promise"], 1, 8) == {"met"}


def test_slow_disk_with_a_deep_queue_is_below() -> None:
    scenario = Scenario(
        loads=(Closed(depth=32),),
        medium=Medium(service_s=0.01, jitter=0.5, servers=4),
        terms=SumTerms(iops=1000.0),
        seconds=7.0,
    )
    assert by_second(scenario, 1, 5) == {"below"}


def test_time_between_two_loads_is_idle() -> None:
    assert by_second(SCENARIOS["iops-300-paused"], 3.4, 5.9) == {"idle"}


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("window_s", [0.05, 0.07, 0.1, 0.33])
@pytest.mark.parametrize("terms", [None, SumTerms(iops=400.0)], ids=["no-terms", "terms"])
def test_limiter_with_any_window(window_s: float, depth: int, terms: SumTerms | None) -> None:
    scenario = Scenario(
        limiter=Limiter(buckets=summed(400), window_s=window_s),
        loads=(Closed(depth=depth),),
        terms=terms,
        seconds=14.0,
    )
    found = judged_scenario(scenario)
    start_s = found.truth[0].start_s + 5
    rows = found.between(start_s, start_s + 7)
    whole_s = sum(row.window_s or 0.0 for row in rows)
    true_share = (
        sum(each.throttled_s for each in found.truth if start_s < each.end_s <= start_s + 7) / 7
    )
    share = sum(row.throttled_s or 0.0 for row in rows) / whole_s
    assert share == pytest.approx(true_share, abs=0.08)
    assert {row.limit for row in rows if row.limit} == {"unknown" if terms is None else "iops"}
    assert found.ceiling.iops == pytest.approx(400, rel=0.02)
    assert found.ceiling.window_s == pytest.approx(window_s, rel=0.02)


# The signs.

WITH_WINDOWS = "windows_100_ms_postgresql_8_clients"
LEAKY_ONE_READER = "leaky_bucket_one_reader"


@pytest.mark.parametrize(
    ("name", "sign", "has_terms"),
    [(WITH_WINDOWS, "pauses", False), (LEAKY_ONE_READER, "bucket", True)],
)
def test_each_sign_can_be_left_out(name: str, sign: Sign, has_terms: bool) -> None:
    """Each of the recordings has one sign only, and is not seen to be throttled without it."""
    recording = close_recording(name)
    terms = recording.terms if has_terms else None
    for signs in (frozenset({sign}), SIGNS):
        found = judged(recording, terms, always_looked_at=True, signs=signs)
        assert set(found.limits) == {"iops" if has_terms else "unknown"}
    for without in (SIGNS - {sign}, frozenset[Sign]()):
        assert judged(recording, terms, always_looked_at=True, signs=without).limits == {}


# Nothing is raised, whatever is sampled.

numbers = st.integers(0, 50) | st.sampled_from([0, 1, 2**31, 2**63])
intervals = st.builds(
    Interval,
    end_s=st.just(0.0),
    seconds=st.floats(0.01, 0.3),
    reads=numbers,
    writes=numbers,
    read_bytes=numbers,
    written_bytes=numbers,
    read_ms=st.none() | numbers,
    write_ms=st.none() | numbers,
    inflight=numbers,
    flushes=numbers,
    flush_ms=numbers,
    is_exact=st.booleans(),
    excluded_flushes=st.sampled_from([0, 0, 3]),
    busy_ms=numbers,
)
apart = st.sampled_from([0.002, 0.01, 0.01, 0.03, 0.0, -0.01, 1.0])
rises = st.integers(-1, 3) | st.sampled_from([0, 0, 0, 10**12])
samples = st.lists(st.tuples(apart, rises, st.integers(0, 2), st.integers(0, 1)), max_size=12)


def close_of(
    drawn: Sequence[tuple[float, int, int, int]], begin_s: float
) -> tuple[CloseSample, ...]:
    at_s, reads, found = begin_s, 0, list[CloseSample]()
    for apart_s, rise, inflight, flushes in drawn:
        at_s, reads = at_s + apart_s, reads + rise
        found.append(CloseSample(at_s, reads, reads, 8 * reads, 0, inflight, flushes, 5 * flushes))
    return tuple(found)


@scaled(60)
@given(st.lists(st.tuples(intervals, samples), max_size=60), st.booleans())
def test_anything_may_be_sampled(
    drawn: list[tuple[Interval, list[tuple[float, int, int, int]]]], has_terms: bool
) -> None:
    windows = at_their_times(each for each, _ in drawn)
    seen = [
        (each, close_of(close, each.end_s - each.seconds))
        for (each, _), (_, close) in zip(windows, drawn, strict=True)
    ]
    detector = DetectorState()
    for each, close in seen:
        detector, found = classify(
            detector, each, close, LIMITS if has_terms else NO_LIMITS, TOLERANCE
        )
        assert all(0 <= verdict.throttled_share <= 1 for verdict in found)


def with_late_samples(seed: int) -> list[Seen]:
    """Return a disk behind a limiter, of which some samples are taken late, or one after another.

    Writes are in flight all the time, and some programs flush.
    """
    random = Random(seed)
    window_s = random.choice((0.03, 0.04, 0.05, 0.07, 0.1, 0.2, 0.25, 0.5))
    late, flushing = random.choice((0, 0.05, 0.2, 0.4)), random.random() < 0.5
    seen: list[Seen] = []
    close = [CloseSample(START_S, 0, 0, 0, 0, 1)]
    first, at_s, writes, flushes = close[0], START_S, 0, 0
    while at_s < START_S + 12:
        begin_s = at_s
        is_late = random.random() < late
        at_s += random.choice((0.002, 0.004, 0.02, 0.025, 0.03)) if is_late else 0.01
        is_next = int(at_s / window_s) != int(begin_s / window_s)
        if is_next or at_s % window_s < 0.3 * window_s:
            writes += random.choice((0, 1, 1, 2))
            if flushing and random.random() < 0.5:
                writes, flushes = writes + 1, flushes + 1
        elif random.random() < 0.05:
            writes += 1
        close.append(CloseSample(at_s, 0, writes, 0, 8 * (writes - flushes), 1, flushes, 0))
        if at_s >= first.at_s + TICK_S - 1e-4:
            seen.append((_window_of(first, close[-1]), tuple(close)))
            first, close = close[-1], []
    return seen


def _window_of(first: CloseSample, last: CloseSample) -> Interval:
    written_bytes = 512 * (last.written_sectors - first.written_sectors)
    writes, flushes = last.writes - first.writes, last.flushes - first.flushes
    return Interval(
        *(0, writes, 0, written_bytes),
        *(last.at_s, last.at_s - first.at_s),
        *(0, 2 * writes, 1),
        flushes=flushes,
        busy_ms=100,
    )


@scaled(60)
@given(st.integers(), st.booleans())
def test_samples_may_be_late(seed: int, has_terms: bool) -> None:
    limits = build_limits(Rates(250.0, 250.0), "sum") if has_terms else NO_LIMITS
    found, _ = classified(with_late_samples(seed), limits)
    assert len(found) > 90


@pytest.mark.parametrize("seed", [16, 433, 535])
def test_two_pauses_may_end_at_the_start_of_one_window(seed: int) -> None:
    classified(with_late_samples(seed))


def test_after_gap_only_what_is_published_remains() -> None:
    _, state = classified(windows_of(WITH_WINDOWS), LIMITS)
    assert state.ceiling is not None
    assert state.seconds
    assert after_gap(state) == DetectorState(ceiling=state.ceiling)


def test_pairs_of_windows_follow_each_other() -> None:
    for name in NAMES:
        for (before, _), (after, _) in pairwise(windows_of(name)):
            assert after.end_s - after.seconds == pytest.approx(before.end_s, abs=1e-4)
