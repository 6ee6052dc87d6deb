"""The verdict on each window."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumBurst, SumTerms
from disksla.limits.limits import NO_LIMITS, Conditions, Limits, PromisedShare, Rates, build_limits
from disksla.units import KIB, MIB
from disksla.verdict.ceiling import Ceiling
from disksla.verdict.interval import Interval
from disksla.verdict.service_time import ServiceTime
from disksla.verdict.span import span_of
from disksla.verdict.throttle import Throttle
from disksla.verdict.verdict import DetectorState, WindowVerdict, after_gap, classify
from support.examples import scaled
from support.scenario_verdicts import ScenarioVerdicts, judged
from support.scenarios import SCENARIOS
from support.simulated_limiter import DEVICE, Closed, Limiter, Medium, Open, Scenario, summed

LIMITS = build_limits(Rates(1000.0, 1000.0, 100e6, 100e6), "sum")
DEEP = ["below-600-of-1000", "below-600-of-vk-1000"]


def window(
    reads: int = 60,
    inflight: int = 32,
    read_ms: int | None = 3200,
    request_bytes: int = 4096,
) -> Interval:
    return Interval(1.0, 0.1, reads, 0, reads * request_bytes, 0, read_ms, 0, inflight)


def verdicts(
    *windows: Interval, limits: Limits = LIMITS, detector: DetectorState | None = None
) -> list[str]:
    return [each.verdict for each in classified(*windows, limits=limits, detector=detector)]


def classified(
    *windows: Interval, limits: Limits = LIMITS, detector: DetectorState | None = None
) -> list[WindowVerdict]:
    """Return the verdicts that are decided, and those that the undecided windows would have."""
    detector = detector or DetectorState()
    found: list[WindowVerdict] = []
    for each in windows:
        detector, decided = classify(detector, each, limits, 0.03, 0.1)
        found += decided
    return found + [each for each in detector.undecided if each is not None]


def by_second(found: ScenarioVerdicts, from_s: float, to_s: float) -> set[str | None]:
    start_s = found.truth[0].start_s
    return {row.verdict for row in found.between(start_s + from_s, start_s + to_s)}


@pytest.mark.parametrize("name", DEEP)
def test_disk_that_serves_less_is_below_within_two_seconds(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert by_second(found, 2.53, 10) == {"below"}
    assert by_second(found, 0, 2.53) <= {"idle", "unproven", "below"}
    assert found.ceiling.iops == pytest.approx(600, rel=0.01)


def test_load_too_shallow_for_the_promise_is_unproven() -> None:
    found = judged(SCENARIOS["below-600-of-1000-shallow"])
    assert by_second(found, 0, 10) == {"idle", "unproven"}


@pytest.mark.parametrize("name", ["below-600-of-1000-synchronous", "below-600-of-vk-1000-shallow"])
def test_shallow_load_at_a_limit_below_the_promise_is_throttled(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert by_second(found, 1, 10) == {"throttled"}
    assert {row.limit for row in found.with_verdict("throttled")} == {"unknown"}
    assert found.ceiling.iops == pytest.approx(600, rel=0.01)


@pytest.mark.parametrize(("queue_depth", "verdict"), [(16, "below"), (17, "throttled")])
def test_contract_states_the_depth_at_which_it_holds(queue_depth: int, verdict: str) -> None:
    found = judged(
        Scenario(
            limiter=Limiter(buckets=summed(180)),
            loads=(Closed(depth=15),),
            terms=SumTerms(iops=300.0, queue_depth=queue_depth),
        )
    )
    assert by_second(found, 2.53, 10) == {verdict}


@pytest.mark.parametrize("reads_per_second", [460, 100])
def test_limit_that_the_terms_do_not_explain(reads_per_second: int) -> None:
    """1.15 times the promise, and a provider that counts 64 KiB as four requests."""
    limiter = Limiter(buckets=summed(reads_per_second))
    load = Closed(depth=16, read_bytes=64 * KIB)
    found = judged(Scenario(limiter=limiter, loads=(load,), terms=SumTerms(iops=400.0)))
    assert by_second(found, 1, 10) == {"throttled"}
    assert {row.limit for row in found.between(1001, 1010)} == {"unknown"}
    assert found.ceiling.iops == pytest.approx(reads_per_second, rel=0.01)


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("window_s", [0.01, 0.03, 0.05, 0.2, 0.25, 0.33, 0.5, 0.7, 1.0])
def test_limiter_with_any_window(window_s: float, depth: int) -> None:
    limiter = Limiter(buckets=summed(400), window_s=window_s)
    medium = Medium(service_s=0.0002)
    found = judged(
        Scenario(
            limiter=limiter,
            loads=(Closed(depth=depth),),
            medium=medium,
            terms=SumTerms(iops=400.0),
            seconds=12.0,
        )
    )
    assert "stalled" not in by_second(found, 0, 12)
    learned_s = found.ceiling.limiter(0.1).window_s
    is_known = window_s not in (0.01, 0.05)  # as many fall into each sample
    assert learned_s == (pytest.approx(window_s, rel=0.1) if is_known else None)
    # The first window of the limiter serves saved tokens. Then two of them are sufficient.
    assert by_second(found, max(0.6, 3.1 * window_s) + 0.53, 11.9 - window_s) == {"throttled"}
    assert {row.limit for row in found.with_verdict("throttled")} == {"iops"}
    assert found.ceiling.iops == pytest.approx(400, rel=0.01)


def test_lowered_limit_changes_throttled_to_below() -> None:
    found = judged(SCENARIOS["below-600-lowered"])
    assert by_second(found, 1, 5) == {"throttled"}
    assert by_second(found, 5.53, 7.02) <= {"throttled", "unproven", "below"}
    assert by_second(found, 7.02, 10) == {"below"}
    assert found.rows[49].ceiling_iops == pytest.approx(1000, rel=0.01)
    assert found.ceiling.iops == pytest.approx(600, rel=0.01)


@pytest.mark.parametrize("name", ["iops-1000-stalled", "unlimited-stalled"])
def test_stall_and_its_end_are_detected(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert by_second(found, 4.35, 5.5) == {"stalled"}
    assert "stalled" not in by_second(found, 0, 4.1) | by_second(found, 5.65, 9)


def test_load_above_the_promise_is_met() -> None:
    found = judged(SCENARIOS["unlimited-deep-above-its-promise"])
    assert by_second(found, 1, 10) == {"met"}
    found = judged(SCENARIOS["steady-99"])
    assert by_second(found, 1, 10) == {"met", "unproven"}


def test_load_between_baseline_and_burst_is_met() -> None:
    found = judged(
        Scenario(
            limiter=Limiter(buckets=summed(300, peak_per_second=2000, capacity=8000)),
            loads=(Open(per_second=1000),),
            terms=SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0)),
            seconds=5.0,
        )
    )
    assert by_second(found, 1, 5) == {"met"}


def test_slow_disk_with_a_deep_queue_is_below() -> None:
    found = judged(
        Scenario(
            loads=(Closed(depth=32),),
            medium=Medium(service_s=0.01, jitter=0.5, servers=4),
            terms=SumTerms(iops=1000.0),
            seconds=5.0,
        )
    )
    assert by_second(found, 2.53, 5) == {"below"}


def test_time_between_two_loads_is_idle() -> None:
    found = judged(SCENARIOS["iops-300-paused"])
    assert by_second(found, 3.4, 6.0) == {"idle"}
    assert by_second(found, 6.35, 8.5) == {"throttled"}


def test_disk_without_terms_is_throttled_but_never_below() -> None:
    lowered = judged(replace(SCENARIOS["below-600-lowered"], terms=None))
    assert by_second(lowered, 3, 5) == {"throttled"}
    assert by_second(lowered, 8, 10) == {"throttled"}
    assert lowered.ceiling.iops == pytest.approx(600, rel=0.01)


def test_window_without_requests_is_idle() -> None:
    assert verdicts(window(0, 0)) == ["idle"]


def test_silence_is_judged_when_a_request_completes() -> None:
    silent = window(0, 1, 0)
    assert verdicts(*[silent] * 11) == []
    assert verdicts(*[silent] * 11, window(110, 0, 200)) == ["unproven"] * 12
    assert verdicts(*[silent] * 9, window(1000, 2, 3000)) == ["throttled"] * 10


@pytest.mark.parametrize(("silent", "lengths_s"), [(5, [0.1, 1.0, 0.1]), (2, [0.1, 0.8])])
def test_release_after_silence_is_no_longer_than_a_window_of_a_limiter(
    silent: int, lengths_s: list[float]
) -> None:
    """Its requests follow one another, and take little of the time that there is for each."""
    detector = DetectorState()
    windows = [window(10, 1, 20), *[window(0, 1, 0)] * silent, *[window(100, 1, 10)] * 6]
    for each in windows:
        detector, _ = classify(detector, each, LIMITS, 0.03, 0.1)
    assert [round(release.seconds, 1) for release in detector.releases] == lengths_s


def test_silence_for_longer_than_any_limiter_explains_is_a_stall() -> None:
    silent = window(0, 1, 0)
    assert verdicts(*[silent] * 12) == ["stalled"] * 12
    assert verdicts(window(), *[silent] * 15) == ["unproven"] + ["stalled"] * 15
    assert verdicts(*[silent] * 15, window()) == ["stalled"] * 15 + ["unproven"]


def test_verdict_waits_for_two_seconds_at_most() -> None:
    """Of a straight line that is followed by silence."""
    detector, decided = DetectorState(), 0
    straight = [window(30, 16, 1600)] * 18
    for number, each in enumerate([*straight, *[window(0, 16, 0)] * 8], start=1):
        detector, verdicts = classify(detector, each, NO_LIMITS, 0.03, 0.1)
        decided += len(verdicts)
        assert number - decided <= 20
    assert decided == 6


def test_silence_that_ends_without_a_completion_is_unproven() -> None:
    assert verdicts(window(0, 1, 0), window(0, 0, 0)) == ["unproven", "idle"]


def test_load_at_the_promise_without_waiting_is_met() -> None:
    assert verdicts(*[window(100, 0, 10)] * 3) == ["met"] * 3
    assert verdicts(*[window(90, 0, 10)] * 3) == ["unproven"] * 3


def test_promise_by_request_size() -> None:
    limits = msgspec.structs.replace(
        LIMITS, promised_shares=(PromisedShare(4 * KIB, 1.0), PromisedShare(16 * KIB, 0.5))
    )
    assert verdicts(window(50, 0, 10, request_bytes=16 * KIB), limits=limits) == ["met"]
    assert verdicts(window(50, 0, 10), limits=limits) == ["unproven"]
    sixteen = [window(30, 32, 3200, request_bytes=16 * KIB)] * 10
    assert verdicts(*sixteen, limits=limits)[-1] == "below"
    larger = [window(30, 32, 3200, request_bytes=64 * KIB)] * 10
    assert verdicts(*larger, limits=limits)[-1] == "unproven"


def test_bandwidth_promise_has_its_own_queue_depth() -> None:
    limits = msgspec.structs.replace(LIMITS, bandwidth_conditions=Conditions(MIB, 8))
    large = [window(5, 8, 800, request_bytes=MIB)] * 10
    assert verdicts(*large, limits=limits)[-1] == "below"
    assert verdicts(*large)[-1] == "unproven"
    small = [window(60, 8, 800)] * 10
    assert verdicts(*small, limits=limits)[-1] == "unproven"


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
    reads = 2 * MIB // request_bytes
    pieces = [window(reads, inflight, 800, request_bytes=request_bytes)] * 10
    assert verdicts(*pieces, limits=limits)[-1] == expected


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([60] * 9, "unproven"),
        ([60] * 10, "below"),
        ([60] * 6 + [250] * 4, "met"),
        ([60] * 7 + [250] * 3, "met"),
        ([60] * 8 + [110, 60], "below"),
    ],
)
def test_below_needs_a_second(windows: list[int], expected: str) -> None:
    assert verdicts(*(window(reads) for reads in windows))[-1] == expected


def test_after_gap_keeps_service_time_and_ceiling() -> None:
    ceiling = Ceiling(Throttle("base", "iops"), 10, 1.0, 1000, 4096000)
    detector = DetectorState(
        (window(),), waiting=1, silent_s=0.2, service=ServiceTime(0.001), ceiling=ceiling
    )
    assert after_gap(detector) == DetectorState(service=ServiceTime(0.001), ceiling=ceiling)


def test_throttle_wait_is_without_service_time() -> None:
    detector = DetectorState(service=ServiceTime(0.001))
    (window_verdict,) = classified(window(100, 32, 3200), detector=detector)
    assert (window_verdict.verdict, window_verdict.throttle) == (
        "throttled",
        Throttle("base", "iops"),
    )
    assert window_verdict.wait_s == pytest.approx(3.1)


def test_ceiling_halves_old_windows() -> None:
    ceiling = Ceiling(Throttle("base", "iops"), 600, 60.0, 60000, 60000 * 4096)
    assert ceiling.iops == 1000.0
    assert ceiling.bytes_per_second == 4096000.0
    faded = ceiling.plus(ceiling.throttle, span_of((window(100),)), 1.0)
    assert faded.windows == 301
    assert faded.iops == pytest.approx(1000)


def test_one_request_in_flight_after_throttling_still_waits() -> None:
    throttled = [window(100, 1, 95)] * 3
    detector = DetectorState(service=ServiceTime(0.00005))
    assert verdicts(*throttled, window(99, 1, 6), detector=detector)[-1] == "throttled"
    assert verdicts(*throttled, window(99, 0, 6), detector=detector)[-1] == "met"


@pytest.mark.parametrize("last", [window(16, 0, 516), window(350, 32, 850)])
def test_wait_of_the_window_after_throttling_is_counted(last: Interval) -> None:
    detector = DetectorState(service=ServiceTime(0.001))
    *_, trailing, later = classified(
        *[window(100, 32, 3200)] * 3, last, window(60, 4, 500), detector=detector
    )
    assert trailing.throttle == Throttle("base", "iops")
    assert trailing.wait_s == pytest.approx(0.5)
    assert later.throttle is None
    assert later.wait_s == 0.0


def test_scenario_without_terms_has_no_charges() -> None:
    state = judged(replace(SCENARIOS["iops-300-deep"], terms=None)).state
    assert state.monitored[DEVICE].assignment.limits.promise_charges == ()


def test_window_without_completions_does_not_end_below() -> None:
    windows = [window(60, 32, 3200)] * 6 + [window(0, 32, 0)] + [window(60, 32, 3200)] * 6
    assert verdicts(*windows)[-1] == "below"


def test_throttling_is_confirmed_after_three_windows() -> None:
    found = [(each.verdict, each.is_confirmed) for each in classified(*[window(100, 2, 95)] * 4)]
    assert found == [("throttled", False)] * 2 + [("throttled", True)] * 2


FIRST = WindowVerdict(
    "throttled", Throttle("base", "iops"), 0.8, throttled_share=0.5, otherwise="met"
)


@pytest.mark.parametrize(
    ("later", "first", "second"),
    [
        ([window(300, 32, 3200)], "met", "met"),
        ([window(180, 32, 3200)] * 3, "met", "met"),
        ([window(100, 32, 3200)], "throttled", "throttled"),
        ([window(180, 32, 3200), window(20, 32, 3200)], "throttled", "throttled"),
        ([window(5, 0, 2)], "throttled", "unproven"),
        ([window(0, 0)], "throttled", "idle"),
    ],
)
def test_first_release_at_a_limit_is_throttled_unless_later_ones_exceed_it(
    later: list[Interval], first: str, second: str
) -> None:
    before = DetectorState(inflight=0, service=ServiceTime(0.001))
    undecided, decided = classify(before, window(100, 32, 900), LIMITS, 0.03, 0.1)
    assert decided == ()
    assert undecided.undecided == (FIRST,)
    found = classified(*later, detector=undecided)
    assert [each.verdict for each in found[:2]] == [first, second]
    assert found[0].wait_s == (FIRST.wait_s if first == "throttled" else 0.0)
    assert found[0].throttled_share == (FIRST.throttled_share if first == "throttled" else 1.0)


def test_release_at_the_limit_by_chance_does_not_end_a_straight_line() -> None:
    """Of a disk that is throttled at 600 of 1000 IOPS, samples split one of its releases."""
    split = [window(97, 12, 1600), window(23, 16, 1600)]
    found = classified(
        *[window(60, 16, 1600)] * 10, *split, *[window(60, 16, 1600)] * 20, limits=LIMITS
    )
    throttled = [each.throttle for each in found if each.verdict == "throttled"]
    assert throttled == [Throttle("unknown", "unknown")] * 32


def test_sample_off_a_straight_line_is_not_throttled_at_a_limit_below() -> None:
    """Of a disk that is throttled at 1110 of 1000 IOPS, one sample is late."""
    late = msgspec.structs.replace(window(111, 16, 1600), seconds=0.107)
    found = classified(
        *[window(111, 16, 1600)] * 30, late, *[window(111, 16, 1600)] * 10, limits=LIMITS
    )
    assert {each.throttle for each in found} == {Throttle("unknown", "unknown")}


@pytest.mark.parametrize(("later", "verdict"), [(60, "throttled"), (12, "met")])
def test_single_release_whose_requests_seem_to_follow_one_another(
    later: int, verdict: str
) -> None:
    """They are a batch, unless those of the next release do, too."""
    before = DetectorState(inflight=0, service=ServiceTime(0.0001))
    found = classified(window(100, 0, 60), *[window(100, 0, later)] * 3, detector=before)
    assert found[0].verdict == verdict


def test_windows_below_the_promise_stay_so_when_an_unknown_limit_is_found() -> None:
    """At a depth of 32, the promise holds; at 16, the same rate is that of an unknown limit."""
    found = classified(*[window(60, 32, 3200)] * 14, *[window(60, 16, 1600)] * 14, limits=LIMITS)
    assert [each.verdict for each in found[10:14]] == ["below"] * 4
    assert [each.verdict for each in found[-8:]] == ["throttled"] * 8


@pytest.mark.parametrize(("service_s", "share"), [(0.0, 1.0), (0.0005, 0.85), (0.003, 1.0)])
def test_time_at_a_constant_rate_is_without_service_time(service_s: float, share: float) -> None:
    """One request at a time, 30 in each window. Nearly no time would remain of 3 ms."""
    detector = DetectorState(service=ServiceTime(service_s))
    found = classified(*[window(30, 1, 100)] * 30, limits=NO_LIMITS, detector=detector)
    assert found[-1].verdict == "throttled"
    assert found[-1].throttled_share == pytest.approx(share)


def test_without_times_of_the_kernel_a_whole_window_is_throttled() -> None:
    (found,) = classified(window(100, 32, None))
    assert (found.verdict, found.throttled_share) == ("throttled", 1.0)


@pytest.mark.parametrize("took_ms", [3, 5, 30, 150])
def test_batches_from_above_are_not_throttled(took_ms: int) -> None:
    detector = DetectorState(service=ServiceTime(0.00003))
    assert set(verdicts(*[window(100, 0, took_ms)] * 30, detector=detector)) == {"met"}


@scaled(50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 30, 30, 31, 60, 100]),
            st.sampled_from([0, 1, 16]),
            st.sampled_from([0, 0, 0, 1, 15, 30, 60]),
        ),
        max_size=80,
    ),
    st.booleans(),
)
def test_each_window_gets_one_verdict_within_two_seconds(
    amounts: list[tuple[int, int, int]], has_terms: bool
) -> None:
    detector, decided = DetectorState(), 0
    limits = build_limits(Rates(300.0, 300.0), "sum") if has_terms else NO_LIMITS
    for number, (reads, inflight, flushes) in enumerate(amounts, start=1):
        sampled = msgspec.structs.replace(
            window(reads, inflight, 3200 if reads else 0), writes=flushes, flushes=flushes
        )
        detector, verdicts = classify(detector, sampled, limits, 0.03, 0.1)
        decided += len(verdicts)
        assert decided + len(detector.undecided) == number
        assert len(detector.undecided) <= 20 + 11
        assert all(0 <= each.throttled_share <= 1 for each in verdicts)


def flushes_only(inflight: int) -> Interval:
    """Return a window in which flushes completed and, as is known exactly, no data write."""
    return Interval(1.0, 0.1, 0, 40, 0, 0, 0, 90, inflight, flushes=40).with_data_writes(0)


def test_disk_that_only_flushes_is_neither_idle_nor_stalled() -> None:
    assert set(verdicts(*[flushes_only(inflight=0)] * 30)) == {"unproven"}
    assert set(verdicts(*[flushes_only(inflight=1)] * 30)) == {"unproven"}
    silent = msgspec.structs.replace(flushes_only(inflight=1), excluded_flushes=0)
    assert "stalled" in verdicts(flushes_only(inflight=1), *[silent] * 30)
