"""What is said of a disk first, the headline of all disks, and what to do next."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.commands.command_table import COMMANDS
from disksla.promise.catalogue.limits import Assignment, Limits
from disksla.tell.explanation import SHOWN_TEXT
from disksla.tell.explanation.condition import (
    CONDITION_TEXT,
    CONDITIONS,
    Condition,
    PeriodSeconds,
    describe_condition,
    headline,
    next_step,
    present_condition,
    watched_period,
    without_terms,
)
from disksla.verdict.credits.account import CreditLevel
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS, LimitKind, Verdict

GRAFANA = Path(__file__).resolve().parents[3] / "grafana"
NUMBERS = st.floats(0, 1e6)
NONE: dict[Verdict, float] = dict.fromkeys(VERDICTS, 0.0)
EMPTY = CreditLevel("iops", 1000.0, 0.0, 5.0, 2.0, 60.0)
HALF = CreditLevel("iops", 1000.0, 400.0, 600.0, 500.0, 60.0)


def of(slow: float = 0.0, limit: LimitKind = "iops", **verdicts: float) -> PeriodSeconds:
    seconds: dict[Verdict, float] = {each: verdicts.get(each, 0.0) for each in VERDICTS}
    return PeriodSeconds(seconds, {limit: verdicts.get("throttled", 0.0)}, slow)


@given(
    st.fixed_dictionaries(dict.fromkeys(VERDICTS, NUMBERS)),
    st.dictionaries(st.sampled_from(LIMIT_KINDS), NUMBERS),
    NUMBERS,
)
def test_conditions_share_the_seconds_of_the_verdicts(
    verdicts: dict[Verdict, float], throttled: dict[LimitKind, float], slow: float
) -> None:
    seconds = PeriodSeconds(verdicts, throttled, slow).conditions()
    assert sum(seconds.values()) == pytest.approx(sum(verdicts.values()))
    assert all(each >= 0 for each in seconds.values())
    assert seconds["slow"] <= slow


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        (of(), None),
        (of(idle=5.0), "idle"),
        (of(idle=4.0, unproven=1.0), "ok"),
        (of(met=4.6, throttled=0.4), "ok"),
        (of(met=4.0, throttled=1.0), "your_limit"),
        (of(throttled=5.0, limit="bandwidth"), "your_limit"),
        (of(throttled=5.0, limit="machine_iops"), "machine_limit"),
        (of(throttled=5.0, limit="unknown"), "unknown_limit"),
        (of(unproven=5.0, slow=4.0), "slow"),
        (of(below=2.0, throttled=3.0), "below"),
        (of(stalled=1.0, throttled=4.0), "stalled"),
        (PeriodSeconds(NONE | {"throttled": 5.0}, {}, 0.0), "unknown_limit"),
    ],
)
def test_worst_condition_is_said(period: PeriodSeconds, expected: Condition | None) -> None:
    assert present_condition(period.conditions()) == expected


def test_credits_are_used_up_only_where_that_is_certain() -> None:
    throttled = of(throttled=5.0).conditions()
    assert present_condition(throttled, [EMPTY]) == "no_credits"
    assert present_condition(throttled, [HALF]) == "your_limit"
    assert present_condition(of(unproven=5.0).conditions(), [EMPTY]) == "ok"


@pytest.mark.parametrize(
    ("condition", "load", "expected"),
    [
        ("ok", 0.06, "OK, 6 % of the limit"),
        ("ok", 0.004, "OK, under 1 % of the limit"),
        ("ok", 1.0094, "OK, 100 % of the limit"),
        ("ok", 1.1, "OK, 100 % of the limit"),
        ("ok", 1.33, "OK, 1.33 times what is promised"),
        ("ok", 30.0, "OK, 30 times what is promised"),
        ("ok", None, "OK"),
        ("your_limit", 1.0, "You: throttled at the limit you bought"),
        (None, 1.0, "Not known yet"),
    ],
)
def test_words(condition: Condition | None, load: float | None, expected: str) -> None:
    assert describe_condition(condition, load) == expected


def test_headline_separates_the_causes() -> None:
    disks = {
        "loop0": of(idle=100.0, throttled=200.0),
        "loop1": of(unproven=300.0, slow=250.0),
        "loop2": of(idle=300.0),
        "loop3": of(below=297.5, throttled=2.5),
        "loop4": of(throttled=300.0, limit="machine_iops"),
        "loop5": of(throttled=300.0),
        "loop6": of(idle=298.0, stalled=2.0),
    }
    by_disk = {name: each.conditions() for name, each in disks.items()}
    assert headline(by_disk, "PERIOD") == (
        "6 of 7 disks had a problem in PERIOD. The disk: hung, no request completes (loop6)."
        " The disk: gives less than promised (loop3). The disk: slow (loop1). The machine:"
        " throttled at its limit (loop4). You: throttled at the limit you bought (loop0, loop5)."
    )
    assert headline({"loop2": by_disk["loop2"]}, "PERIOD") == "No problem was seen in PERIOD."
    assert headline({"loop1": by_disk["loop1"]}, "PERIOD") == (
        "The disk had a problem in PERIOD. The disk: slow (loop1)."
    )


def test_period_of_a_daemon_that_has_just_started_is_what_it_watched() -> None:
    whole, short = of(idle=100.0, met=198.0).conditions(), of(idle=6.0, met=0.9).conditions()
    assert watched_period([short, whole]) == "the last five minutes"
    assert watched_period([short]) == "the last 6.9 s"


def test_headline_names_eight_disks_of_a_cause() -> None:
    disks = {f"sd{number}": of(throttled=20.0).conditions() for number in range(20)}
    assert headline(disks, "PERIOD").endswith(
        "(sd0, sd1, sd2, sd3, sd4, sd5, sd6, sd7 and 12 more)."
    )


def test_words_are_those_of_the_dashboards() -> None:
    states, panels = (
        re.findall(r"color: '[a-z-]+', text: '(.+?)' }", (GRAFANA / file).read_text())
        for file in ("state.libsonnet", "dashboards/lib.libsonnet")
    )
    assert states == [CONDITION_TEXT[each].words for each in CONDITIONS]
    assert panels[: len(VERDICTS)] == [SHOWN_TEXT[each].words for each in VERDICTS]


def test_each_condition_has_a_colour() -> None:
    assert CONDITION_TEXT.keys() == set(CONDITIONS)


KNOWN = Assignment("aws.gp3", "aws", "", 2**30, Limits(), source="configuration")
UNKNOWN = Assignment("unknown", "", "", 2**30, Limits(), source="none")


def step_of(condition: Condition, assignment: Assignment = KNOWN) -> str | None:
    seconds = dict.fromkeys(CONDITIONS, 0.0) | {"ok": 200.0} | {condition: 100.0}
    return next_step("vdb", assignment, seconds)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_problem_has_a_step_with_commands_that_are_there(condition: Condition) -> None:
    step = step_of(condition)
    assert (step is None) == (condition in {"idle", "ok"})
    named = re.findall(r"disksla ([a-z-]+)", step or "advise")
    assert {*named} <= COMMANDS.keys()


def test_the_worst_problem_decides() -> None:
    seconds = dict.fromkeys(CONDITIONS, 100.0)
    assert next_step("vdb", KNOWN, seconds) == step_of("stalled")
    seconds |= {"stalled": 0.0}
    assert "for a ticket" in (next_step("vdb", KNOWN, seconds) or "")
    assert next_step("vdb", KNOWN, seconds | {"below": 0.5}) == step_of("slow")


def test_a_limit_of_a_disk_without_terms() -> None:
    assert "disksla limits lists the types" in (step_of("unknown_limit", UNKNOWN) or "")
    assert "doctor" in (step_of("unknown_limit") or "")


@pytest.mark.parametrize(
    ("sources", "begin"),
    [
        (["none"], "What this disk was sold as"),
        (["none", "none"], "What these disks were sold as"),
        (["none", "api"], None),
        ([], None),
    ],
)
def test_a_machine_without_terms(sources: list[str], begin: str | None) -> None:
    found = without_terms(sources)
    assert found is None if begin is None else (found or "").startswith(begin)
