import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.credits.account import CreditLevel
from disksla.pipeline.window_records import WindowRecord
from lab.judge import Facts, episodes_of, judge
from lab.quantity import Duration
from lab.requirement import shortcomings
from lab.scenario import Expectation
from lab.truth import Window

ALL = Expectation(throttled="seconds", limit="iops", ceiling=True, wait=True, prompt=True)


def windows_of(held: list[bool], credit: float | None = None) -> list[Window]:
    return [
        Window(
            number / 10,
            (number + 1) / 10,
            *(30, 0, 30 * 4096, 0),
            inflight=32,
            held=32 if is_held else 0,
            wait_s=3.2 if is_held else 0.0,
            holding_s=0.1 if is_held else 0.0,
            rate="base" if is_held else None,
            limit="iops" if is_held else None,
            credits={} if credit is None else {"iops": credit},
        )
        for number, is_held in enumerate(held)
    ]


def row_of(window: Window, verdict: str, shift_s: float = 0.0, **told: object) -> WindowRecord:
    is_held = verdict == "throttled"
    said: dict[str, object] = {
        "limit": "iops" if is_held else None,
        "ceiling_iops": 300.0 if is_held else None,
        "throttle_wait_s": 3.2 if is_held else 0.0,
        "inflight": 32,
    }
    row = WindowRecord(window.end_s + shift_s, "vda", None, 0.1, 30, 0)
    return msgspec.structs.replace(row, verdict=verdict, **(said | told))


def told(held: list[bool]) -> list[WindowRecord]:
    return [
        row_of(window, "throttled" if is_held else "unproven")
        for window, is_held in zip(windows_of(held), held, strict=True)
    ]


@given(st.lists(st.booleans(), min_size=1, max_size=80))
def test_the_truth_itself_has_no_shortcomings(held: list[bool]) -> None:
    findings = judge(windows_of(held), told(held), Facts(held_rate=300.0), ALL)
    assert findings.said_s == pytest.approx(findings.truth_s)
    share = Expectation(throttled="share")
    assert shortcomings(findings, share) == []
    if sum(held) * 0.1 > 0.5 and findings.episodes == 1:
        assert shortcomings(findings, ALL) == []


def test_being_blind_is_found_out() -> None:
    held = [False] * 10 + [True] * 50 + [False] * 10
    findings = judge(windows_of(held), told([False] * 70), Facts(held_rate=300.0), ALL)
    assert len(shortcomings(findings, ALL)) == 6


def test_crying_wolf_is_found_out() -> None:
    findings = judge(windows_of([False] * 20), told([True] * 20), Facts(), Expectation())
    never = Expectation(throttled="never", never=("throttled",), mostly="unproven")
    assert len(shortcomings(findings, never)) == 3


@pytest.mark.parametrize(("late", "as_expected"), [(0, True), (2, True), (3, False)])
def test_an_onset_is_to_be_seen_within_three_windows(late: int, as_expected: bool) -> None:
    held = [False] * 10 + [True] * 50 + [False] * 10
    said = [False] * (10 + late) + [True] * (50 - late) + [False] * 10
    findings = judge(windows_of(held), told(said), Facts(), ALL)
    assert findings.onset_delay_s == pytest.approx(0.1 * (late + 1))
    assert (shortcomings(findings, Expectation(prompt=True)) == []) == as_expected


def test_short_breaks_do_not_end_an_episode() -> None:
    held = [True] * 5 + [False] * 2 + [True] * 5 + [False] * 3 + [True] * 5
    assert [
        (round(episode.start_s, 6), round(episode.end_s, 6))
        for episode in episodes_of(windows_of(held), drips=False)
    ] == [(0.0, 1.2), (1.5, 2.0)]


def test_a_dripping_bucket_holds_for_most_of_a_window() -> None:
    [window] = windows_of([True])
    half = [Window(0.0, 0.1, 1, 0, 1, 0, 1, held=0, wait_s=0.1, holding_s=0.06)]
    assert len(episodes_of(half, drips=True)) == 1
    assert episodes_of(half, drips=False) == []
    assert len(episodes_of([window], drips=True)) == 1


def test_below_is_to_be_seen_in_time_and_not_before() -> None:
    expected = Expectation(below_since=Duration(1.0))
    truth = windows_of([False] * 60)

    def problems(below_from: int) -> list[str]:
        rows = [
            row_of(window, "below" if number >= below_from else "unproven")
            for number, window in enumerate(truth)
        ]
        return shortcomings(judge(truth, rows, Facts(), expected), expected)

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
def test_credit_bounds_are_sound_and_close(
    lower: float, upper: float, estimate: float, problems: int
) -> None:
    truth = windows_of([False] * 10, credit=50.0)
    rows = [
        row_of(window, "met", credits=(CreditLevel("iops", 100.0, lower, upper, estimate, 0.0),))
        for window in truth
    ]
    expected = Expectation(credits=True, credits_close=True)
    findings = judge(truth, rows, Facts(capacities={"iops": 100.0}), expected)
    assert len(shortcomings(findings, expected)) == problems


@pytest.mark.parametrize(("pace", "problems"), [(1.0, 0), (1.09, 0), (1.2, 1), (0.8, 1)])
def test_the_time_to_exhaustion_is_held_against_when_credits_were_gone(
    pace: float, problems: int
) -> None:
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
    assert len(shortcomings(findings, expected)) == problems


def test_credits_that_never_end_have_no_time_to_it() -> None:
    truth = windows_of([False] * 40, credit=50.0)
    expected = Expectation(empty_since=Duration(1.0))
    findings = judge(truth, told([False] * 40), Facts(capacities={"iops": 100.0}), expected)
    assert len(shortcomings(findings, expected)) == 1


@pytest.mark.parametrize(
    ("said_s", "machine_s", "most", "little"),
    [(4.5, 6.0, 0, 1), (2.5, 6.0, 1, 1), (0.1, 6.0, 1, 0), (4.5, None, 1, 1), (None, 6.0, 1, 1)],
)
def test_iowait_is_held_against_the_machines(
    said_s: float | None, machine_s: float | None, most: int, little: int
) -> None:
    truth = windows_of([True] * 50)
    rows = [row_of(window, "throttled") for window in truth]
    rows[0] = row_of(truth[0], "throttled", throttled_iowait_s=said_s)
    facts = Facts(machine_iowait_s=machine_s)
    for expected, problems in (
        (Expectation(iowait="most"), most),
        (Expectation(iowait="little"), little),
    ):
        assert len(shortcomings(judge(truth, rows, facts, expected), expected)) == problems
