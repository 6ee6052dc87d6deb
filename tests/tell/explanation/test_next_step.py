"""What to do next: a command that is there, for each problem."""

import re

import pytest

from disksla.commands.command_table import COMMANDS
from disksla.promise.catalogue.limits import Assignment, Limits
from disksla.tell.explanation.condition import next_step, without_terms
from disksla.tell.explanation.words import CONDITIONS, Condition

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
