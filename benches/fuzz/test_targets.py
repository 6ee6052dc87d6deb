"""Each target with valid input, former findings, mutations and arbitrary bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.mutation import expand, mutate
from fuzz.target import SEEDS, Target
from fuzz.targets import TARGETS
from support.examples import scaled

each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)


@each_target
def test_valid_input_is_accepted(target: Target) -> None:
    samples = target.samples()
    assert samples
    assert all(target.check(sample) for sample in samples)


@each_target
def test_former_findings_pass(target: Target) -> None:
    for content in target.findings():
        target.check(content)


@pytest.mark.nightly  # make check runs make fuzz
@each_target
def test_mutated_input_passes_the_check(target: Target) -> None:
    seeds = target.seeds()
    for number in range(target.mutations):
        choose = random.Random(number).randrange
        content = mutate(seeds[choose(len(seeds))], target, seeds, choose)
        try:
            target.check(content)
        except BaseException as error:
            error.add_note(f"mutation {number} of {target.name}: {content[:5000]!r}")
            raise


@each_target
def test_expanded_input_takes_linear_time(target: Target) -> None:
    """Code that takes quadratic time would run for minutes, beyond the time limit of tests."""
    seeds = target.samples()
    for number in range(scaled(2).max_examples):
        choose = random.Random(number).randrange
        target.check(expand(seeds[choose(len(seeds))], choose))


@each_target
def test_arbitrary_bytes_pass_the_check(target: Target) -> None:
    @scaled(50)
    @given(st.binary())
    def check(content: bytes) -> None:
        target.check(content)

    check()


def test_seeds_belong_to_targets() -> None:
    assert {path.name for path in SEEDS.iterdir()} <= TARGETS.keys()
