"""How many examples a property is tried on: a few in `make test`, many at night."""

from hypothesis import settings

USUAL = 100


def scaled(examples: int) -> settings:
    """Return settings for a property that `make check` tries on `examples` examples.

    The profile decides (tests/conftest.py): a profile of 25 examples, not 100, tries a quarter.
    """
    return settings(max_examples=max(1, examples * settings().max_examples // USUAL))
