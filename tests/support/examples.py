"""How many examples a property is tried on: a few in `make test`, many at night."""

from hypothesis import settings

USUAL = 100
_AT_NIGHT = 1000


def scaled(examples: int) -> settings:
    """Return settings for a property that `make cover` tries on `examples` examples.

    The profile decides (conftest.py): that of `make test` has 25 examples, not 100, and
    tries a quarter.
    """
    return settings(max_examples=max(1, examples * settings().max_examples // USUAL))


def halved() -> settings:
    """Return settings for a property that computes much: half of the examples, but all at night.

    `make cover` tries it on 50 examples, `make nightly` on 1,000 as any other.
    """
    examples = settings().max_examples
    return settings(max_examples=examples if examples >= _AT_NIGHT else examples // 2)
