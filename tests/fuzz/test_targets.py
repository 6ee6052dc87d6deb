"""Every target, tried with what was ever found, and with some mutations anew."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.mutation import mutate, swollen
from fuzz.target import FOUND, Target
from fuzz.targets import TARGETS

SWOLLEN = 8

each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)


@each_target
def test_good_input_is_accepted(target: Target) -> None:
    samples = target.samples()
    assert samples
    assert all(target.law(sample) for sample in samples)


@each_target
def test_what_was_found_is_mended(target: Target) -> None:
    for content in target.found():
        target.law(content)


@each_target
def test_no_mutation_breaks_the_law(target: Target) -> None:
    seeds = target.seeds()
    for number in range(target.mutations):
        choose = random.Random(number).randrange
        content = mutate(seeds[choose(len(seeds))], target, seeds, choose)
        try:
            target.law(content)
        except BaseException as error:
            error.add_note(f"mutation {number} of {target.name}: {content[:5000]!r}")
            raise


@each_target
def test_a_great_length_takes_time_by_its_length(target: Target) -> None:
    """Nothing is measured: by its square, it would take minutes."""
    seeds = target.samples()
    for number in range(SWOLLEN):
        choose = random.Random(number).randrange
        target.law(swollen(seeds[choose(len(seeds))], choose))


@each_target
def test_any_bytes_obey_the_law(target: Target) -> None:
    @settings(max_examples=50)
    @given(st.binary())
    def holds(content: bytes) -> None:
        target.law(content)

    holds()


def test_what_was_found_belongs_to_a_target() -> None:
    assert {path.name for path in FOUND.iterdir()} <= TARGETS.keys()
