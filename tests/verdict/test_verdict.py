"""The verdict on each window."""

from dataclasses import replace

import msgspec
import pytest

from disksla.config.custom_terms import SumBurst, SumTerms
from disksla.limits.limits import NO_LIMITS, Conditions, Limits, PromisedShare, Rates, build_limits
from disksla.units import KIB, MIB
from disksla.verdict.interval import Interval
from disksla.verdict.service_time import ServiceTime
from disksla.verdict.throttling import Throttle
from disksla.verdict.verdict import Ceiling, DetectorState, after_gap, classify
from support.scenario_verdicts import ScenarioVerdicts, judged
from support.scenarios import BELOW, SCENARIOS
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
    detector = detector or DetectorState()
    found: list[str] = []
    for each in windows:
        detector, window_verdict = classify(detector, each, limits, 0.03, 0.1)
        found.append(window_verdict.verdict)
    return found


def by_second(found: ScenarioVerdicts, from_s: float, to_s: float) -> set[str | None]:
    start_s = found.truth[0].start_s
    return {row.verdict for row in found.between(start_s + from_s, start_s + to_s)}


@pytest.mark.parametrize("name", DEEP)
def test_disk_that_serves_less_is_below_within_two_seconds(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert by_second(found, 2.53, 10) == {"below"}
    assert by_second(found, 0, 2.53) <= {"idle", "unproven", "below"}
    assert found.ceiling.iops == pytest.approx(600, rel=0.01)


@pytest.mark.parametrize("name", sorted(BELOW.keys() - set(DEEP) - {"below-600-lowered"}))
def test_load_too_shallow_for_the_promise_is_unproven(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert by_second(found, 0, 10) == {"idle", "unproven"}


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


def test_stall_needs_missing_completions() -> None:
    assert verdicts(window(), *[window(0)] * 3) == ["unproven", "unproven", "stalled", "stalled"]
    slow = window(1, 1, 100)
    assert verdicts(*[slow] * 2, *[window(0, 1)] * 3)[2:] == ["unproven", "unproven", "stalled"]


def test_stall_without_a_known_rate_needs_five_windows() -> None:
    assert verdicts(*[window(0)] * 6) == ["unproven"] * 4 + ["stalled"] * 2


def test_stall_ends_with_the_first_completion() -> None:
    assert verdicts(window(), *[window(0)] * 3, window())[-1] == "unproven"


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
    detector = DetectorState((window(),), 1, 2, 3.0, ServiceTime(0.001), ceiling)
    assert after_gap(detector) == DetectorState(service=ServiceTime(0.001), ceiling=ceiling)


def test_service_time_is_learned_without_waiting() -> None:
    def learned(*windows: Interval, limits: Limits = LIMITS) -> float:
        detector = DetectorState()
        for each in windows:
            detector, _ = classify(detector, each, limits, 0.03, 0.1)
        return detector.service.shortest_s

    assert learned(window(50, 0, 9)) == pytest.approx(0.0002)
    assert learned(window(50, 0, 59), window(60, 0, 5)) == pytest.approx(0.0001)
    assert learned(window(50, 0, 9), window(90, 0, 8)) == pytest.approx(0.0002)
    assert learned(window(100, 32, 19)) == pytest.approx(0.0002)
    assert learned(window(100, 1, 90)) == 0.0  # throttled ones are among them
    assert learned(window(200, 0, 9)) == 0.0
    assert learned(window(50, 0, None)) == 0.0
    assert learned(window(50, 0, 9), limits=NO_LIMITS) == pytest.approx(0.0002)
    assert learned(window(50, 1, 9), limits=NO_LIMITS) == 0.0


def test_throttle_wait_is_without_service_time() -> None:
    detector = DetectorState(service=ServiceTime(0.001))
    _, window_verdict = classify(detector, window(100, 32, 3200), LIMITS, 0.03, 0.1)
    assert (window_verdict.verdict, window_verdict.throttle) == (
        "throttled",
        Throttle("base", "iops"),
    )
    assert window_verdict.wait_s == pytest.approx(3.1)


def test_ceiling_halves_old_windows() -> None:
    ceiling = Ceiling(Throttle("base", "iops"), 600, 60.0, 60000, 60000 * 4096)
    assert ceiling.iops == 1000.0
    assert ceiling.bytes_per_second == 4096000.0
    faded = ceiling.plus(ceiling.throttle, window(100))
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
    for each in [window(100, 32, 3200)] * 3:
        detector, _ = classify(detector, each, LIMITS, 0.03, 0.1)
    detector, trailing = classify(detector, last, LIMITS, 0.03, 0.1)
    assert trailing.throttle is None
    assert trailing.wait_s == pytest.approx(0.5)
    _, later = classify(detector, window(60, 4, 500), LIMITS, 0.03, 0.1)
    assert later.wait_s == 0.0


def test_scenario_without_terms_has_no_charges() -> None:
    state = judged(replace(SCENARIOS["iops-300-deep"], terms=None)).state
    assert state.monitored[DEVICE].assignment.limits.promise_charges == ()


def test_window_without_completions_does_not_end_below() -> None:
    windows = [window(60, 32, 3200)] * 6 + [window(0, 32, 0)] + [window(60, 32, 3200)] * 6
    assert verdicts(*windows)[-1] == "below"


def test_throttling_is_confirmed_after_three_windows() -> None:
    detector, found = DetectorState(), []
    for each in [window(100, 2, 95)] * 4:
        detector, window_verdict = classify(detector, each, LIMITS, 0.03, 0.1)
        found.append((window_verdict.verdict, window_verdict.is_confirmed))
    assert found == [("throttled", False)] * 2 + [("throttled", True)] * 2


@pytest.mark.parametrize("took_ms", [3, 5, 30, 150])
def test_batches_from_above_are_not_throttled(took_ms: int) -> None:
    detector = DetectorState(service=ServiceTime(0.00003))
    assert set(verdicts(*[window(100, 0, took_ms)] * 30, detector=detector)) == {"met"}
