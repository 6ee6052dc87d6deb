import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.credits.account import CreditLevel
from disksla.pipeline.window_records import WindowRecord
from lab.judge import Facts, episodes_of, judge
from lab.load import PhaseResult
from lab.quantity import Duration
from lab.requirements import is_saturated, unmet_requirements
from lab.scenario import Expectation
from lab.truth import Window
from lab.verdict import slower_before_s, unlearned_s

ALL = Expectation(throttled="seconds", limit="iops", ceiling=True, wait=True, prompt=True)


def windows_of(throttled: list[bool], credit: float | None = None) -> list[Window]:
    return [
        Window(
            number / 10,
            (number + 1) / 10,
            *(30, 0, 30 * 4096, 0),
            inflight=32,
            waiting=32 if is_throttled else 0,
            wait_s=3.2 if is_throttled else 0.0,
            throttled_s=0.1 if is_throttled else 0.0,
            rate="base" if is_throttled else None,
            limit="iops" if is_throttled else None,
            credits={} if credit is None else {"iops": credit},
        )
        for number, is_throttled in enumerate(throttled)
    ]


def row_of(window: Window, verdict: str, shift_s: float = 0.0, **values: object) -> WindowRecord:
    is_throttled = verdict == "throttled"
    defaults: dict[str, object] = {
        "limit": "iops" if is_throttled else None,
        "throttled_s": 0.1 if is_throttled else None,
        "ceiling_iops": 300.0 if is_throttled else None,
        "throttle_wait_s": 3.2 if is_throttled else 0.0,
        "inflight": 32,
    }
    row = WindowRecord(window.end_s + shift_s, "vda", None, 0.1, 30, 0)
    return msgspec.structs.replace(row, verdict=verdict, **(defaults | values))


def rows_of(throttled: list[bool]) -> list[WindowRecord]:
    return [
        row_of(window, "throttled" if is_throttled else "unproven")
        for window, is_throttled in zip(windows_of(throttled), throttled, strict=True)
    ]


@given(st.lists(st.booleans(), min_size=1, max_size=80))
def test_true_verdicts_meet_the_requirements(throttled: list[bool]) -> None:
    findings = judge(windows_of(throttled), rows_of(throttled), Facts(limit_rate=300.0), ALL)
    assert findings.reported_s == pytest.approx(findings.truth_s)
    share = Expectation(throttled="share")
    assert unmet_requirements(findings, share) == []
    if sum(throttled) * 0.1 > 0.5 and findings.episodes == 1:
        assert unmet_requirements(findings, ALL) == []


def test_missed_throttling_is_reported() -> None:
    throttled = [False] * 10 + [True] * 50 + [False] * 10
    findings = judge(windows_of(throttled), rows_of([False] * 70), Facts(limit_rate=300.0), ALL)
    assert len(unmet_requirements(findings, ALL)) == 6


def test_false_throttling_is_reported() -> None:
    findings = judge(windows_of([False] * 20), rows_of([True] * 20), Facts(), Expectation())
    never = Expectation(throttled="never", never=("throttled",), mostly="unproven")
    assert len(unmet_requirements(findings, never)) == 3


@pytest.mark.parametrize(("late", "as_expected"), [(0, True), (2, True), (3, False)])
def test_onset_must_be_detected_within_three_windows(late: int, as_expected: bool) -> None:
    throttled = [False] * 10 + [True] * 50 + [False] * 10
    reported = [False] * (10 + late) + [True] * (50 - late) + [False] * 10
    findings = judge(windows_of(throttled), rows_of(reported), Facts(), ALL)
    assert findings.onset_delay_s == pytest.approx(0.1 * (late + 1))
    assert (unmet_requirements(findings, Expectation(prompt=True)) == []) == as_expected


def test_short_breaks_do_not_end_an_episode() -> None:
    throttled = [True] * 5 + [False] * 2 + [True] * 5 + [False] * 3 + [True] * 5
    assert [
        (round(episode.start_s, 6), round(episode.end_s, 6))
        for episode in episodes_of(windows_of(throttled), is_smooth=False)
    ] == [(0.0, 1.2), (1.5, 2.0)]


def test_smooth_limiter_throttles_for_half_of_a_window() -> None:
    [window] = windows_of([True])
    half = [Window(0.0, 0.1, 1, 0, 1, 0, 1, waiting=0, wait_s=0.1, throttled_s=0.06)]
    assert len(episodes_of(half, is_smooth=True)) == 1
    assert episodes_of(half, is_smooth=False) == []
    assert len(episodes_of([window], is_smooth=True)) == 1


def test_episodes_at_a_smooth_limiter_end_with_the_same_window_in_truth_and_verdicts() -> None:
    waited_s = [0.08] * 20 + [0.04] * 10
    truth = [
        msgspec.structs.replace(window, throttled_s=each_s)
        for window, each_s in zip(windows_of([True] * 30), waited_s, strict=True)
    ]
    rows = [row_of(window, "throttled", throttled_s=window.throttled_s) for window in truth]
    assert judge(truth, rows, Facts(is_smooth=True), ALL).end_delay_s == pytest.approx(0.0)
    assert judge(truth, rows[:15], Facts(is_smooth=True), ALL).end_delay_s == pytest.approx(0.5)


def test_below_must_be_detected_in_time_and_not_before() -> None:
    expected = Expectation(below_since=Duration(1.0))
    truth = windows_of([False] * 60)

    def problems(below_from: int) -> list[str]:
        rows = [
            row_of(window, "below" if number >= below_from else "unproven")
            for number, window in enumerate(truth)
        ]
        return unmet_requirements(judge(truth, rows, Facts(), expected), expected)

    assert problems(12) == []
    assert problems(29) == []
    assert len(problems(31)) == 1
    assert len(problems(5)) == 1
    assert len(problems(60)) == 2


@pytest.mark.parametrize(
    ("lower", "upper", "estimate", "problems"),
    [
        (49.0, 51.0, 50.0, 0),
        (51.0, 52.0, 51.0, 1),
        (40.0, 60.0, 50.0, 1),
        (48.0, 52.0, 47.0, 1),
        (10.0, 20.0, 15.0, 3),
    ],
)
def test_credit_bounds_must_be_right_and_close(
    lower: float, upper: float, estimate: float, problems: int
) -> None:
    truth = windows_of([False] * 10, credit=50.0)
    rows = [
        row_of(window, "met", credits=(CreditLevel("iops", 100.0, lower, upper, estimate, 0.0),))
        for window in truth
    ]
    expected = Expectation(credits=True, credits_close=True)
    findings = judge(truth, rows, Facts(capacities={"iops": 100.0}), expected)
    assert len(unmet_requirements(findings, expected)) == problems


@pytest.mark.parametrize(("pace", "problems"), [(1.0, 0), (1.09, 0), (1.2, 1), (0.8, 1)])
def test_time_to_exhaustion_is_compared_with_the_truth(pace: float, problems: int) -> None:
    truth = windows_of([False] * 40 + [True] * 5, credit=50.0)
    rows = [
        row_of(
            window,
            "met",
            credits=(CreditLevel("iops", 100.0, 0.0, 100.0, 50.0, pace * (4.1 - window.end_s)),),
        )
        for window in truth
    ]
    expected = Expectation(empty_since=Duration(1.0))
    findings = judge(truth, rows, Facts(capacities={"iops": 100.0}), expected)
    assert len(unmet_requirements(findings, expected)) == problems


def test_credits_that_last_have_no_time_to_exhaustion() -> None:
    truth = windows_of([False] * 40, credit=50.0)
    expected = Expectation(empty_since=Duration(1.0))
    findings = judge(truth, rows_of([False] * 40), Facts(capacities={"iops": 100.0}), expected)
    assert len(unmet_requirements(findings, expected)) == 1


@pytest.mark.parametrize(
    ("attributed_s", "machine_s", "most", "little"),
    [(4.5, 6.0, 0, 1), (2.5, 6.0, 1, 1), (0.1, 6.0, 1, 0), (4.5, None, 1, 1), (None, 6.0, 1, 1)],
)
def test_iowait_is_compared_with_that_of_the_machine(
    attributed_s: float | None, machine_s: float | None, most: int, little: int
) -> None:
    truth = windows_of([True] * 50)
    rows = [row_of(window, "throttled") for window in truth]
    rows[0] = row_of(truth[0], "throttled", throttled_iowait_s=attributed_s)
    facts = Facts(machine_iowait_s=machine_s)
    for expected, problems in (
        (Expectation(iowait="most"), most),
        (Expectation(iowait="little"), little),
    ):
        assert len(unmet_requirements(judge(truth, rows, facts, expected), expected)) == problems


@pytest.mark.parametrize(
    ("missing", "in_seconds", "throughout"), [(4, 0, 0), (6, 0, 1), (13, 1, 1)]
)
def test_little_may_be_missing_where_requests_wait_throughout(
    missing: int, in_seconds: int, throughout: int
) -> None:
    truth = windows_of([True] * 50)
    rows = rows_of([True] * (50 - missing) + [False] * missing)
    for kind, problems in (("seconds", in_seconds), ("throughout", throughout)):
        expected = msgspec.convert({"throttled": kind}, Expectation)
        found = judge(truth, rows, Facts(), expected)
        assert len(unmet_requirements(found, expected)) == problems


def test_limits_that_must_not_occur_are_reported() -> None:
    truth = windows_of([True] * 50)
    rows = [row_of(window, "throttled") for window in truth[1:]]
    rows.append(row_of(truth[0], "throttled", limit="machine_iops"))
    expected = Expectation(never=("machine_iops", "machine_bandwidth"))
    findings = judge(truth, rows, Facts(), expected)
    assert unmet_requirements(findings, expected) == ["machine_iops for 0.1 s, expected never"]


@pytest.mark.parametrize(("waited_s", "is_met"), [(3.1, True), (2.9, True), (2.6, False)])
def test_service_time_of_a_light_load_may_be_missing_at_a_leaky_bucket(
    waited_s: float, is_met: bool
) -> None:
    truth = windows_of([True] * 30)
    light, full = PhaseResult(0.0, 1.0, None, 1.0), PhaseResult(1.0, 3.0, None, 0.5)
    before = [msgspec.structs.replace(window, wait_s=0.0) for window in truth[:10]]
    after = [msgspec.structs.replace(window, wait_s=12.0) for window in truth[10:]]
    assert slower_before_s(before + after, [light, full]) == pytest.approx(540.0)
    assert slower_before_s(before + after, [full]) == 0.0
    rows = [row_of(window, "throttled", throttle_wait_s=waited_s) for window in truth]
    facts = Facts(limit_rate=300.0, slower_before_s=4.8)
    smooth = judge(truth, rows, msgspec.structs.replace(facts, is_smooth=True), ALL)
    problems = unmet_requirements(smooth, ALL)
    assert any("throttle wait" in problem for problem in problems) is not is_met
    windows = judge(truth, rows, facts, ALL)
    is_near = waited_s > 0.93 * 3.2
    assert any("throttle wait" in each for each in unmet_requirements(windows, ALL)) is not is_near


@pytest.mark.parametrize(("waited_s", "is_met"), [(3.4, True), (3.6, True), (3.9, False)])
def test_service_time_may_count_as_waiting_where_no_lighter_load_shows_it(
    waited_s: float, is_met: bool
) -> None:
    truth = windows_of([True] * 20)
    full = PhaseResult(0.0, 2.0, None, 0.12)  # 30 requests per window wait for 3.2 of 3.6 s
    assert unlearned_s(truth, [full]) == pytest.approx(20 * 0.4)
    light = PhaseResult(0.0, 1.0, None, 0.001)
    unthrottled = [msgspec.structs.replace(window, wait_s=0.0) for window in truth[:10]]
    assert unlearned_s(truth, [full, light]) == pytest.approx(20 * 0.4)
    assert unlearned_s(unthrottled + truth[10:], [light, full]) == 0.0
    assert unlearned_s(truth, []) == 0.0
    rows = [row_of(window, "throttled", throttle_wait_s=waited_s) for window in truth]
    facts = Facts(limit_rate=300.0, unlearned_s=20 * 0.4)
    problems = unmet_requirements(judge(truth, rows, facts, ALL), ALL)
    assert any("throttle wait" in each for each in problems) is not is_met
    learned = judge(truth, rows, Facts(limit_rate=300.0), ALL)
    is_near = waited_s < 1.07 * 3.2
    assert any("throttle wait" in each for each in unmet_requirements(learned, ALL)) is not is_near


@pytest.mark.parametrize(
    ("found", "true", "is_required", "problem"),
    [
        (7900.0, 8000.0, True, None),
        (7100.0, 8000.0, True, "burst depth 7100.0, expected 90% of 8000.0 at least"),
        (8500.0, 8000.0, True, "burst depth 8500.0, expected 90% of 8000.0 at least"),
        (None, 8000.0, True, "burst depth None, expected 90% of 8000.0 at least"),
        (7100.0, 8000.0, False, None),
        (None, None, False, None),
        (2000.0, None, False, "burst depth 2000, expected none"),
    ],
)
def test_burst_depth_is_that_of_the_credits(
    found: float | None, true: float | None, is_required: bool, problem: str | None
) -> None:
    windows = windows_of([True] * 20)
    rows = [row_of(window, "throttled", burst_depth_requests=found) for window in windows]
    facts = Facts(300.0, capacities={} if true is None else {"iops": true})
    expected = Expectation(burst=is_required)
    problems = unmet_requirements(judge(windows, rows, facts, expected), expected)
    assert problems == ([] if problem is None else [problem])
    changed = msgspec.structs.replace(facts, is_changed=True)
    assert judge(windows, rows, changed, expected).burst_depth is None


def test_slow_disk_of_the_lab_is_not_saturated() -> None:
    for throttled, saturated in (([True] * 19 + [False], True), ([True, False] * 10, False)):
        findings = judge(windows_of(throttled), rows_of(throttled), Facts(300.0), ALL)
        assert is_saturated(findings) is saturated


def test_first_window_of_an_episode_is_not_the_late_end_of_the_one_before() -> None:
    """The clocks of a virtual machine and of its host differ by some milliseconds."""
    throttled = [True] * 10 + [False] * 20 + [True] * 10
    windows = windows_of(throttled)
    rows = [
        row_of(window, "throttled" if is_throttled else "unproven", shift_s=-0.01)
        for window, is_throttled in zip(windows, throttled, strict=True)
    ]
    rows[29] = row_of(windows[29], "throttled", shift_s=-0.01)
    assert judge(windows, rows, Facts(300.0), ALL).end_delay_s == pytest.approx(0.01)
