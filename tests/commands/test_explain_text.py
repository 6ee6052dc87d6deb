"""What is told of a disk in words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from disksla.commands._explain_text import explain_minute
from disksla.limits.assignment import Assignment
from disksla.pipeline.window_records import WindowRecord
from support.scenario_verdicts import judged
from support.scenarios import SCENARIOS
from support.simulated_limiter import DEVICE, Scenario


def told(scenario: Scenario) -> str:
    found = judged(scenario)
    return " ".join(explain_minute(found.rows, found.state.monitored[DEVICE].assignment))


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        (
            "iops-300-deep",
            [
                "For 9.6 of the last 10 s the disk was held at its limit of 300 IOPS (base rate)",
                "requests waited 105 ms each because of that. It gave 300 IOPS, 1.172 MiB/s;",
                (
                    "the promise is 300 IOPS. A larger or faster disk or fewer requests would"
                    " help; the provider keeps its promise."
                ),
                "For 0.4 of the last 10 s it had nothing to do.",
            ],
        ),
        (
            "bandwidth-25",
            ["at its limit of 23.84 MiB/s (base rate)", "or fewer bytes would help"],
        ),
        (
            "mixed-separate",
            [
                "at its limit of 500 IOPS for reads and 300 IOPS for writes (base rate)",
                (
                    "the promise is 500 IOPS for reads and 300 IOPS for writes and 66.76 MiB/s for"
                    " reads and 38.15 MiB/s for writes."
                ),
            ],
        ),
        (
            "burst-then-base",
            [
                "the disk was held at 2000 IOPS (burst rate): requests waited",
                "That costs credits: once they are used up, it is held at 300 IOPS.",
                "at its limit of 300 IOPS (base rate)",
            ],
        ),
        (
            "below-600-of-1000",
            [
                (
                    "the disk gave less than was promised: 600 IOPS, 2.344 MiB/s, with 32 requests"
                    " in flight. The promise is 1000 IOPS. That is for the provider to answer"
                ),
                "what was asked of it did not put its promise to the test",
            ],
        ),
        (
            "unlimited-stalled",
            ["For 1.3 of the last 10 s requests were in flight and none completed"],
        ),
        (
            "unlimited-deep-above-its-promise",
            [
                "it did what is promised or more, and was not held back",
                "If something was slow then, this disk was not held at a limit.",
            ],
        ),
        (
            "idle",
            [
                "For 10 of the last 10 s it had nothing to do.",
                "If something was slow then, this disk was not held at a limit.",
            ],
        ),
    ],
)
def test_the_last_minute_in_words(name: str, sentences: list[str]) -> None:
    words = told(SCENARIOS[name])
    for sentence in sentences:
        assert sentence in words


def test_a_disk_of_unknown_terms() -> None:
    held = told(replace(SCENARIOS["iops-300-deep"], terms=None))
    assert "the disk was held at a limit that nobody told us of: requests waited" in held
    assert "It gave 300 IOPS, 1.172 MiB/s. Whether that is what was promised can be said" in held
    assert "it served what was asked; nothing is promised to hold that against" in held


def test_no_trouble_is_left_out_for_being_short() -> None:
    found = judged(SCENARIOS["iops-300-bursts"])
    sentences = explain_minute(found.rows, found.state.monitored[DEVICE].assignment)
    assert sentences[0].startswith("For 1 of the last 10 s the disk was held at its limit")


def test_only_the_last_minute_is_told_of() -> None:
    found = judged(replace(SCENARIOS["iops-300-poisson-90"], seconds=61.0))
    words = " ".join(explain_minute(found.rows, found.state.monitored[DEVICE].assignment))
    assert "of the last 60 s" in words
    assert "nothing to do" not in words


def assignment() -> Assignment:
    return judged(SCENARIOS["iops-300-deep"]).state.monitored[DEVICE].assignment


@pytest.mark.parametrize("rows", [[], [WindowRecord(1.0, "vda", gap="start")]])
def test_before_there_is_a_window_there_is_nothing_to_tell(rows: list[WindowRecord]) -> None:
    assert explain_minute(rows, assignment()) == [
        "Nothing is known of this disk yet: it was not seen twice without a gap."
    ]


@hypothesis_settings(max_examples=50)
@given(
    name=st.sampled_from(sorted(SCENARIOS.keys() - {"iops-20000-deep", "steady-90-fast"})),
    known=st.booleans(),
    first=st.integers(0, 60),
    number=st.integers(1, 40),
)
def test_there_is_always_a_story(name: str, known: bool, first: int, number: int) -> None:
    found = judged(SCENARIOS[name] if known else replace(SCENARIOS[name], terms=None))
    sentences = explain_minute(
        found.rows[first : first + number], found.state.monitored[DEVICE].assignment
    )
    assert sentences
    assert all(sentence.endswith(".") for sentence in sentences)
    assert not any("None" in sentence or "nan" in sentence for sentence in sentences)
