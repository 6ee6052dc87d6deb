"""Sentences of `disksla explain`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.promise.catalogue import NO_LIMITS, Provision, SharedLimits, derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.limits import Assignment, Conditions, LatencyKind
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms, custom_limits
from disksla.state.history.history import history_of
from disksla.state.history.slot import RunningTotals, Slot
from disksla.state.pipeline.snapshot import disk_snapshot
from disksla.state.pipeline.state import State
from disksla.tell.explanation.past import HistoryView
from disksla.tell.explanation.sentences import (
    LargerMachine,
    MachineLimit,
    describe_machine,
    explain,
    explain_writes,
)
from disksla.tell.explanation.summary import SlowPart, Summary, SummaryPart
from disksla.verdict.throttling import LimitKind, ThrottleLevel, Verdict
from support.examples import scaled
from support.scenario_verdicts import judged
from support.scenarios import SCENARIOS
from support.simulated_limiter import DEVICE, Closed, Limiter, Open, Scenario, summed


def sentences_of(states: Sequence[State]) -> list[str]:
    past, snapshot = HistoryView(history_of(states)), disk_snapshot(states[-1], DEVICE)
    assert snapshot is not None
    return past.explain(snapshot, past.seconds(snapshot))


def throttled(level: ThrottleLevel, limit: LimitKind) -> Summary:
    part = SummaryPart(0.1, 7000.0, 7000.0 * 4096, 32.0, 0.005, most_iops=7000.0)
    return Summary(0.1, {"throttled": part}, {(level, limit): part})


M6I = SharedLimits(
    "ebs",
    "all its EBS volumes together",
    "m6i.large",
    custom_limits(
        SumTerms(
            iops=3600,
            bytes_per_second=81.25e6,
            burst=SumBurst(iops=40_000, iops_credits=65_520_000),
        )
    ),
)


@pytest.mark.parametrize(
    ("limit", "level", "expected"),
    [
        (
            "machine_iops",
            "base",
            (
                "For 0.1 of the last 0.1 s the disk was throttled at the limit of the machine:"
                " requests waited 5 ms each, and the disk served 7000 IOPS, 27.34 MiB/s. m6i.large"
                " allows all its EBS volumes together 3600 IOPS. A larger or faster disk would not"
                " help; m6i.xlarge would (6000 IOPS)."
            ),
        ),
        (
            "machine_iops",
            "burst",
            (
                "m6i.large allows all its EBS volumes together 40000 IOPS (burst rate; without"
                " credits 3600 IOPS). A larger"
            ),
        ),
        ("machine_bandwidth", "base", "77.49 MiB/s. A larger or faster disk would not help; a"),
    ],
)
def test_limit_of_the_machine_is_not_blamed_on_the_disk(
    limit: LimitKind, level: ThrottleLevel, expected: str
) -> None:
    machine = MachineLimit(M6I, {"iops": LargerMachine("m6i.xlarge", 6000)})
    assignment = Assignment("aws.gp3", "aws", "", 2**40, NO_LIMITS)
    (sentence,) = explain(throttled(level, limit), assignment, machine)
    assert expected in sentence
    assert "provider" not in sentence
    (without,) = explain(throttled(level, limit), assignment)
    assert without.endswith("A larger or faster disk would not help.")


@pytest.mark.parametrize("limit", ["iops", "bandwidth"])
def test_limit_that_only_the_provider_names(limit: LimitKind) -> None:
    without = msgspec.structs.replace(assignment(), limits=NO_LIMITS)
    [sentence] = explain(throttled("base", limit), without)
    kind = "bandwidth" if limit == "bandwidth" else "IOPS"
    assert f"throttled at its limit of {kind}, by the provider's count: requests" in sentence
    assert "Its terms have no such limit" in sentence


def test_limit_of_the_machine_that_only_the_provider_names() -> None:
    shared = SharedLimits("ebs", "all", "", custom_limits(SumTerms(iops=3600)))
    summary = throttled("base", "machine_bandwidth")
    [sentence] = explain(summary, assignment(), MachineLimit(shared, {}))
    assert sentence.endswith(". A larger or faster disk would not help.")


def test_machine_is_named_by_what_its_limits_follow_from() -> None:
    shared = SharedLimits("disks", "all", "2 vCPUs", custom_limits(SumTerms(iops=3600)))
    summary = throttled("base", "machine_iops")
    [sentence] = explain(summary, assignment(), MachineLimit(shared, {}))
    assert "A machine with 2 vCPUs" in sentence


def test_small_slice_of_another_limit_is_left_out() -> None:
    part = SummaryPart(0.9, 500.0, 0.0, 8.0, 0.01)
    throttled: dict[tuple[ThrottleLevel, LimitKind], SummaryPart] = {
        ("base", "iops"): part._replace(seconds=99.0),
        ("unknown", "unknown"): part,
    }
    sentences = explain(Summary(300.0, {"throttled": part}, throttled), assignment())
    assert len([each for each in sentences if "throttled" in each]) == 1


def test_limits_of_the_machine_in_words() -> None:
    assert describe_machine(M6I) == (
        "m6i.large: 3600 IOPS and 77.49 MiB/s for all its EBS volumes together; 40000 IOPS with"
        " burst credits"
    )


EXPLAINED = (
    *("iops-300-deep", "bandwidth-25", "mixed-separate", "burst-then-base", "below-60-of-100"),
    *("unlimited-stalled", "unlimited-deep-above-its-promise", "idle"),
    "below-600-of-1000-synchronous",
)
STEADY_70 = Scenario(loads=(Open(per_second=210),), terms=SumTerms(iops=300.0))


def explained(scenario: Scenario) -> str:
    return " ".join(sentences_of(judged(scenario).states))


def test_sentences_of_scenarios(golden: Callable[[Path, str], None]) -> None:
    cases = {name: SCENARIOS[name] for name in EXPLAINED} | {"steady-70": STEADY_70}
    cases |= {f"{name}, no terms": replace(each, terms=None) for name, each in cases.items()}
    text = "".join(f"# {name}\n{explained(each)}\n\n" for name, each in cases.items())
    golden(Path(__file__).parent / "sentences.txt", text)


def test_window_of_the_limiter_is_named() -> None:
    limiter = Limiter(buckets=summed(300), window_s=0.5)
    text = explained(replace(SCENARIOS["iops-300-deep"], limiter=limiter))
    assert "and the disk served 300 of 300 IOPS, 1.172 MiB/s, at intervals of 500 ms." in text


@pytest.mark.parametrize("has_terms", [True, False])
def test_window_that_is_shorter_than_two_samples_is_named(has_terms: bool) -> None:
    limiter = Limiter(buckets=summed(900), window_s=0.07)
    scenario = replace(SCENARIOS["iops-300-deep"], limiter=limiter, seconds=12.0)
    text = explained(replace(scenario, terms=SumTerms(iops=900.0) if has_terms else None))
    [found_ms] = map(float, re.findall(r"at intervals of ([0-9.]+)\s+ms", text))
    assert found_ms == pytest.approx(70, rel=0.03)


def test_short_throttling_is_not_left_out() -> None:
    load = Closed(depth=32, active=((20.53, 22.5),))
    scenario = replace(SCENARIOS["iops-300-deep"], loads=(load,), seconds=61.0)
    sentences = sentences_of(judged(scenario).states)
    assert re.match(
        r"For 2\.\d of the last 61 s the disk was throttled at its limit", sentences[0]
    )


def assignment() -> Assignment:
    return judged(SCENARIOS["iops-300-deep"]).state.monitored[DEVICE].assignment


def test_no_window_is_stated() -> None:
    states = judged(SCENARIOS["iops-300-deep"]).states
    assert sentences_of(states[:2]) == [
        "Nothing was measured: there were no two samples of this disk in a row."
    ]


@scaled(50)
@given(
    name=st.sampled_from(sorted(SCENARIOS.keys() - {"iops-20000-deep", "steady-90-fast"})),
    has_terms=st.booleans(),
    first=st.integers(0, 60),
    number=st.integers(1, 40),
)
def test_any_windows_are_explained(name: str, has_terms: bool, first: int, number: int) -> None:
    found = judged(SCENARIOS[name] if has_terms else replace(SCENARIOS[name], terms=None))
    sentences = sentences_of(found.states[first : first + number + 1])
    assert sentences
    assert all(sentence.endswith(".") for sentence in sentences)
    assert not any("None" in sentence or "nan" in sentence for sentence in sentences)


def seconds_with(*exact: bool, flushes: float = 3.0) -> list[Slot]:
    most = [2.0 if each else 5.0 for each in exact]
    totals = [RunningTotals(least_writes=2.0, most_writes=n, flushes=flushes) for n in most]
    return [Slot(1.0, 1.0, None, each) for each in totals]


def test_exact_counts_are_named_where_flushes_are_counted_as_writes() -> None:
    (sentence,) = explain_writes(seconds_with(False, False, True, True))
    assert "counted exactly, without empty flushes, in 2 of 4 seconds with flushes." in sentence
    (sentence,) = explain_writes(seconds_with(False, False), "no permission; use root")
    assert sentence.endswith("They were not counted exactly: no permission; use root.")
    (sentence,) = explain_writes(seconds_with(False))
    assert sentence.endswith("between two bounds. They were not counted exactly.")
    assert explain_writes(seconds_with(False, True, flushes=0.0)) == []
    assert explain_writes([]) == []


def test_longest_problem_is_first_and_flushes_are_named() -> None:
    part = SummaryPart(0.1, 500.0, 0.0, 8.0, 0.01)
    long = part._replace(seconds=148.0, iops=100.0, most_iops=600.0)
    short = part._replace(seconds=3.0, iops=250.0, most_iops=333.0)
    summary = Summary(300.0, {"below": long}, {("base", "iops"): short})
    first, second = explain(summary, assignment())
    assert first.startswith(
        "For 148 of the last 300 s the disk was limited to less than promised:"
    )
    assert "promised: 100 to 600 IOPS, 0 B/s" in first
    assert second.startswith("For 3 of the last 300 s the disk was throttled at its limit")
    assert "served 300 of 300 IOPS, 0 B/s" in second


def test_a_limiter_was_seen_where_fewer_are_in_flight_than_the_promise_needs() -> None:
    part = SummaryPart(9.0, 100.0, 409_600.0, 8.0, 0.01)
    usual = assignment()
    of_depth_8 = msgspec.structs.replace(usual.limits, iops_conditions=Conditions(4096, 8))
    for limits, gave in ((usual.limits, "was limited to less"), (of_depth_8, "gave less")):
        terms = msgspec.structs.replace(usual, limits=limits)
        [sentence] = explain(Summary(10.0, {"below": part}, {}), terms)
        assert sentence.startswith(f"For 9 of the last 10 s the disk {gave} than promised:")


def test_allocation_units_are_named_where_a_disk_gives_less() -> None:
    """A load on two units of Yandex's is above what one may have, and below the promise."""
    part = SummaryPart(9.0, 100.0, 409_600.0, 8.0, 0.01)
    disk = derive_limits(load_catalog()["yandex.network-ssd"], 96 * GIB, Provision())
    summary = Summary(10.0, {"below": part}, {})
    [sentence] = explain(summary, msgspec.structs.replace(assignment(), limits=disk))
    assert "Each allocation unit of 32 GiB has its own limit, so a load" in sentence


def test_each_rate_of_an_unknown_limit_has_a_sentence() -> None:
    """The disk was enlarged, and its limit lowered; the terms are still those of before."""
    limiter = Limiter(buckets=summed(500), changes=((20.02, summed(120)),))
    scenario = Scenario(
        limiter=limiter, loads=(Closed(depth=12),), seconds=40.0, terms=SumTerms(iops=250)
    )
    text = explained(scenario)
    assert re.search(r"served 50\d IOPS.* It serves 2 times what its terms say: was it enl", text)
    assert "364" not in text
    assert "the load asked for less" not in text


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (98.8, "the load asked for less than is promised: 98.8 IOPS, 0 B/s."),
        (153.0, "the load asked for less than is promised: 98.8 to 153 IOPS, 0 B/s."),
        (
            299.0,
            "the load may have asked for what is promised (flushes leave a doubt): 98.8 to 299",
        ),
    ],
)
def test_flushes_leave_a_range(most: float, expected: str) -> None:
    part = SummaryPart(100.0, 98.8, 0.0, 1.0, 0.0, most_iops=most, load=0.33, most_load=most / 300)
    [sentence] = explain(Summary(100.0, {"unproven": part}, {}), assignment())
    assert expected in sentence


def test_merged_flushes_are_not_said_to_be_more_than_the_limit() -> None:
    part = SummaryPart(100.0, 408.0, 0.0, 8.0, 0.01, most_iops=600.0)
    summary = Summary(300.0, {"throttled": part}, {("base", "iops"): part})
    assert "served 300 of 300 IOPS, 0 B/s" in explain(summary, assignment())[0]
    no_flushes = part._replace(most_iops=408.0)
    summary = summary._replace(throttled={("base", "iops"): no_flushes})
    assert "served 408 of 300 IOPS, 0 B/s" in explain(summary, assignment())[0]


def test_more_than_the_baseline_is_said_to_be_of_the_burst() -> None:
    burst = custom_limits(SumTerms(iops=300, burst=SumBurst(iops=2000, iops_credits=9)))
    part = SummaryPart(100.0, 500.0, 0.0, 8.0, 0.01)
    summary = Summary(300.0, {"throttled": part}, {("base", "iops"): part})
    of_burst = msgspec.structs.replace(assignment(), limits=burst)
    found = explain(summary, of_burst)[0]
    assert "500 of 300 IOPS, 0 B/s, at first at its burst rate. That" in found
    base = summary._replace(throttled={("base", "iops"): part._replace(iops=301.0)})
    assert "at first" not in explain(base, of_burst)[0]


def test_no_limit_holds_for_longer_than_the_period() -> None:
    """Throttled seconds that the provider names are up to five seconds late."""
    part = SummaryPart(304.0, 300.0, 0.0, 8.0, 0.01)
    summary = Summary(300.0, {"throttled": part}, {("base", "iops"): part})
    assert explain(summary, assignment())[0].startswith("For 300 of the last 300 s the disk was")


def test_what_holds_for_less_than_a_hundredth_of_the_time_is_not_said() -> None:
    part = SummaryPart(2.9, 500.0, 0.0, 8.0, 0.01)
    verdicts: dict[Verdict, SummaryPart] = dict.fromkeys(("unproven", "met", "below"), part)
    verdicts["idle"] = part._replace(seconds=290.0)
    summary = Summary(
        300.0, verdicts, {("base", "iops"): part}, slow=SlowPart(2.9, "usual", "read", 1.0, 0.1)
    )
    assert explain(summary, assignment()) == ["For 290 of the last 300 s the disk was idle."]
    verdicts["stalled"] = part._replace(seconds=1.1)
    assert explain(summary, assignment())[0].startswith("For 1.1 of the last 300 s requests were")


def test_load_below_a_limit_that_others_share() -> None:
    parts: dict[Verdict, SummaryPart] = {
        "met": SummaryPart(100.0, 300.0, 0.0, 8.0, 0.01),
        "unproven": SummaryPart(200.0, 90.0, 0.0, 1.0, 0.01),
    }
    limits = msgspec.structs.replace(assignment().limits, shared_by="all disks of the machine")
    shared = msgspec.structs.replace(assignment(), limits=limits)
    said = " ".join(explain(Summary(300.0, parts, {}), shared))
    assert "the load was below the limit, which is shared by all disks of the machine" in said


@pytest.mark.parametrize(
    ("load", "most_load", "expected"),
    [
        (0.5, 0.5, "That is less than is promised (300 IOPS"),
        (0.9, 1.1, "The terms of this disk do not explain this rate"),
    ],
)
def test_rate_of_an_unknown_limit(load: float, most_load: float, expected: str) -> None:
    part = SummaryPart(100.0, 150.0, 0.0, 8.0, 0.01, load=load, most_load=most_load)
    summary = Summary(300.0, {"throttled": part}, {("unknown", "unknown"): part})
    said = " ".join(explain(summary, assignment()))
    assert expected in said


def test_too_short_a_time_is_stated() -> None:
    part = SummaryPart(0.0996, 0.0, 0.0, 0.0, 0.0)
    expected = ["0.1 s is too short a time to say anything about this disk."]
    summary = Summary(0.0996, {"idle": part}, {}, others=50)
    assert explain(summary, assignment()) == expected


def promised(latency_kind: LatencyKind | None) -> Assignment:
    limits = msgspec.structs.replace(assignment().limits, latency_kind=latency_kind)
    return msgspec.structs.replace(assignment(), limits=limits)


SERVED = SummaryPart(300.0, 18.0, 73e3, 0.0, 0.0)
CALM = Summary(
    300.0, {"unproven": SERVED}, {}, peak_load=0.3, load=0.06, latency_s=0.0008, compared_s=280.0
)


@pytest.mark.parametrize(
    ("part", "latency_kind", "expected"),
    [
        (
            SlowPart(253.0, "promise", "read", 0.021, 0.001),
            "guaranteed",
            (
                "For 253 of the last 300 s reads took 21 ms each; 1 ms is promised (guaranteed):"
                " the disk is slow. No limit was seen that explains it."
            ),
        ),
        (
            SlowPart(253.0, "promise", "write", 0.021, 0.001),
            None,
            "writes took 21 ms each; 1 ms is promised: the disk is slow.",
        ),
        (
            SlowPart(60.0, "usual", None, 0.02, 0.0007),
            "indicative",
            (
                "For 60 of the last 300 s requests took 20 ms each, 28.6 times their usual 0.7 ms:"
                " the disk is slow."
            ),
        ),
    ],
)
def test_slow_disk_is_called_slow_and_not_acquitted(
    part: SlowPart, latency_kind: LatencyKind | None, expected: str
) -> None:
    first, *others = explain(CALM._replace(slow=part, latency_s=0.021), promised(latency_kind))
    assert expected in first
    assert not [each for each in others if "Nothing was wrong" in each or "No limit" in each]


def test_disk_is_acquitted_of_what_was_tested() -> None:
    expected = "Nothing was wrong with this disk: 6 % of its limit, 0.8 ms."
    assert explain(CALM, assignment())[0] == expected
    without_latency = explain(CALM._replace(latency_s=None), assignment())[0]
    assert without_latency == "Nothing was wrong with this disk: 6 % of its limit."
    unknown = explain(CALM._replace(compared_s=100.0), assignment())[0]
    assert unknown.startswith("No limit held this disk back: 6 % of its limit, 0.8 ms. Which")
    for not_tested in (
        CALM._replace(peak_load=0.85),
        CALM._replace(peak_load=None),
        CALM._replace(load=None),
    ):
        assert explain(not_tested, assignment())[0].startswith("For 300 of the last 300 s the")
    assert explain(CALM, assignment(), machine_s=30.0)[0].startswith("For 300 of the last 300 s")
