import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.pipeline.window_records import WindowRecord
from disksla.verdict.credits.account import CreditLevel
from lab.judge import SETTLED_S, Facts, judge
from lab.long import disagreements, phase_problems, seen_truth, spans_of
from lab.model import Duration
from lab.negatives import Negative
from lab.requirements import unmet_requirements
from lab.scenario import Expectation, Recorders, Throttled
from lab.truth import Window

ALL = Expectation(throttled="points", limit="iops", ceiling=True)
FACTS = Facts(limit_rate=300.0, limiter_window_s=0.1)


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
        "limiter_window_s": 0.1 if is_throttled else None,
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
    findings = judge(windows_of(throttled), rows_of(throttled), FACTS, ALL)
    assert findings.reported_s == pytest.approx(findings.truth_s)
    if any(throttled):
        assert unmet_requirements(findings, ALL) == []


def test_missed_throttling_is_reported() -> None:
    throttled = [False] * 10 + [True] * 50 + [False] * 10
    findings = judge(windows_of(throttled), rows_of([False] * 70), FACTS, ALL)
    assert unmet_requirements(findings, ALL) == [
        "throttled for 0.00 s of 7.0, allowed 4.44 to 5.56",
        "limit none, expected iops",
        "window unknown, expected 100 ms",
        "ceiling: error unknown, allowed 1 %",
    ]


@pytest.mark.parametrize(
    ("kind", "found", "is_met"),
    [
        ("points", 42, True),
        ("points", 41, False),
        ("points", 59, False),
        ("quarter", 38, True),
        ("quarter", 37, False),
        ("quarter", 63, False),
        ("unknown", 0, True),
        ("unknown", 52, True),
        ("unknown", 53, False),
        ("never", 52, True),
        ("never", 53, False),
    ],
)
def test_throttled_time_is_within_what_its_kind_allows(
    kind: Throttled, found: int, is_met: bool
) -> None:
    truth = windows_of([True] * 50 + [False] * 50)
    rows = rows_of([True] * found + [False] * (100 - found))
    expected = Expectation(throttled=kind)
    findings = judge(truth, rows, Facts(), expected, [-SETTLED_S])
    assert (unmet_requirements(findings, expected) == []) is is_met


@pytest.mark.parametrize(
    ("window_s", "has_terms", "kind"),
    [
        (0.05, False, "points"),
        (1.0, True, "points"),
        (0.0, True, "quarter"),
        (0.03, False, "unknown"),
        (None, True, "quarter"),
    ],
)
def test_kind_follows_from_the_window(
    window_s: float | None, has_terms: bool, kind: Throttled
) -> None:
    by_window = Expectation(throttled="by_window")
    assert by_window.at(window_s, has_terms=has_terms).throttled == kind
    assert Expectation(throttled="never").at(window_s, has_terms=True).throttled == "never"


@pytest.mark.parametrize(
    ("found_s", "true_s", "is_met"),
    [(0.1, 0.1, True), (0.103, 0.1, False), (None, 0.1, False), (0.1, 0.0, True)],
)
def test_window_of_the_limiter_is_within_two_percent(
    found_s: float | None, true_s: float, is_met: bool
) -> None:
    windows = windows_of([True] * 50)
    rows = [row_of(window, "throttled", limiter_window_s=found_s) for window in windows]
    expected = Expectation(throttled="points")
    findings = judge(windows, rows, Facts(limiter_window_s=true_s), expected)
    assert (unmet_requirements(findings, expected) == []) is is_met


def test_below_must_be_detected_in_time_and_not_before() -> None:
    expected = Expectation(below_since=Duration(2.0))
    truth = windows_of([False] * 70)

    def problems(below_from: int) -> list[str]:
        rows = [
            row_of(window, "below" if number >= below_from else "unproven")
            for number, window in enumerate(truth)
        ]
        return unmet_requirements(judge(truth, rows, Facts(), expected), expected)

    assert problems(22) == []
    assert problems(11) == []
    assert problems(39) == []
    assert len(problems(41)) == 1
    assert len(problems(5)) == 1
    assert len(problems(70)) == 2


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


def test_recorders_start_at_random_times_and_some_again() -> None:
    spans = spans_of(Recorders(4, restarted=1), 120.0, "7 name")
    assert len(spans) == 5
    assert spans[0] == (0.0, 120.0)
    assert all(0.0 <= start_s < end_s <= 120.0 for start_s, end_s in spans)
    assert all(start_s <= 60.0 for start_s, _ in spans[:4])
    assert spans[4][0] == pytest.approx(spans[3][1] + 1.0)
    assert spans == spans_of(Recorders(4, restarted=1), 120.0, "7 name")
    assert spans_of(None, 120.0, "7 name") == []


def test_each_phase_is_compared_with_the_truth_once_it_has_settled() -> None:
    throttled = [False] * 200 + [True] * 200 + [False] * 200
    truth = windows_of(throttled)
    changes_s = [20.0, 40.0, 59.0]
    assert list(phase_problems(0.0, truth, rows_of(throttled), changes_s, "points")) == []
    late = [False] * 290 + [True] * 200 + [False] * 110
    assert list(phase_problems(0.0, truth, rows_of(late), changes_s, "points")) == []
    wrong = rows_of([False] * 195 + [True] * 190 + [False] * 115 + [True] * 3 + [False] * 97)
    assert list(phase_problems(-1.0, truth, wrong, [40.0, 20.0], "points")) == [
        "1 to 21 s: throttled for 0.50 s of 20.0, allowed 0.00 to 0.40",
        "31 to 41 s: throttled for 8.50 s of 10.0, allowed 9.20 to 10.80",
        "51 to 61 s: throttled for 0.30 s of 10.0, allowed 0.00 to 0.20",
    ]
    [problem] = phase_problems(0.0, truth[250:], rows_of([False] * 600), [20.0], "points")
    assert problem.startswith("30 to 60 s: throttled for 0.00 s of 30.0")


def test_long_load_is_compared_once_it_has_settled() -> None:
    truth = windows_of([True] * 300)
    late = [False] * 100 + [True] * 200
    findings = judge(truth, rows_of(late), FACTS, ALL, [0.0])
    assert (findings.truth_s, findings.loaded_s) == pytest.approx((20.0, 20.0))
    assert unmet_requirements(findings, ALL) == []
    assert unmet_requirements(judge(truth, rows_of(late), FACTS, ALL), ALL) != []
    wrong = [
        row_of(window, "throttled", limit=limit, limiter_window_s=window_s)
        for window, limit, window_s in zip(
            truth, ["unknown"] * 100 + ["iops"] * 200, [0.5] * 100 + [0.1] * 200, strict=True
        )
    ]
    assert unmet_requirements(judge(truth, wrong, FACTS, ALL, [0.0]), ALL) == []
    never_unknown = Expectation(never=("unknown",))
    findings = judge(truth, wrong, FACTS, never_unknown, [0.0])
    assert unmet_requirements(findings, never_unknown) == ["unknown for 10.0 s, expected never"]


def test_recorders_must_agree_ten_seconds_after_the_later_start() -> None:
    first = rows_of([True] * 400)
    later = rows_of([False] * 250 + [True] * 150)[150:]
    assert seen_truth(windows_of([True] * 400), later)[0].start_s == pytest.approx(25.1)
    assert list(disagreements(later, [first])) == []
    other = rows_of([False] * 300 + [True] * 100)[150:]
    [problem] = disagreements(other, [first, first[:200]])
    assert problem == "throttled for 67.1%, 100.0% by 1 in the same time"


def test_negative_is_throttled_for_half_a_percent_at_most() -> None:
    assert Negative("name", 100.0, 60.0, (0.3, 0.0, 0.1, 0.0)).problems == []
    assert Negative("name", 100.0, 60.0, (0.4, 0.0, 0.5, 0.0)).problems == [
        "no terms: throttled for 0.40 s of 60.0, allowed 0.00 to 0.30",
        "terms of 1.3 times the load: throttled for 0.50 s of 60.0, allowed 0.00 to 0.30",
    ]
