"""One input of disksla: the law that holds for any bytes of it, and good bytes to begin with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FOUND = Path(__file__).with_name("seeds")
"""What once broke a law, by target: a file each, tried by every `make check`."""


class Tree(NamedTuple):
    """How bytes are taken apart into mappings, lists and values, and put together again."""

    loads: Callable[[bytes], Any]
    """Raises ValueError for what cannot be taken apart."""
    dumps: Callable[[Any], bytes]


class Target(NamedTuple):
    """One input."""

    name: str
    law: Callable[[bytes], bool]
    """Gives whether the bytes were accepted; raises for what should never happen."""
    samples: Callable[[], list[bytes]]
    """Bytes that are accepted, to begin with."""
    words: tuple[bytes, ...] = ()
    """What the input is made of, to be thrown in."""
    tree: Tree | None = None
    mutations: int = 300
    """How many mutations `make check` tries."""

    def seeds(self) -> list[bytes]:
        """Give what is accepted, and all that was ever found to break the law."""
        return [*self.samples(), *self.found()]

    def found(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted((FOUND / self.name).glob("*"))]
