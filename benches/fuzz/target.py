"""A fuzz target: one input of disksla, a check that all input must pass, and valid samples."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SEEDS = Path(__file__).with_name("seeds")
"""Directory of inputs that once failed a check, by target; `make check` runs them all."""


class Tree(NamedTuple):
    """How bytes are parsed into mappings, lists and values, and encoded again."""

    loads: Callable[[bytes], Any]
    """Raises ValueError if the bytes cannot be parsed."""
    dumps: Callable[[Any], bytes]


class Target(NamedTuple):
    """One input of disksla."""

    name: str
    check: Callable[[bytes], bool]
    """Returns whether the bytes were accepted. Raises an exception for incorrect behavior."""
    samples: Callable[[], list[bytes]]
    """Returns valid input."""
    words: tuple[bytes, ...] = ()
    """Tokens of the format, for mutations to insert."""
    tree: Tree | None = None
    mutations: int = 300
    """Number of mutations in `make check`."""

    def seeds(self) -> list[bytes]:
        """Return valid input, and all former findings."""
        return [*self.samples(), *self.findings()]

    def findings(self) -> list[bytes]:
        """Return the inputs that once failed the check."""
        return [path.read_bytes() for path in sorted((SEEDS / self.name).glob("*"))]
