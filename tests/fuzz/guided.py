"""One target under atheris, which keeps the mutations that reach what nothing reached before.

python -m fuzz.guided TARGET OPTION-OF-LIBFUZZER... CORPUS
"""

import random
import sys
from collections.abc import Sequence

import atheris

from fuzz.mutation import mutate

with atheris.instrument_imports(include=["disksla"]):
    from fuzz.targets import TARGETS


def main(words: Sequence[str]) -> None:
    """Try one target until time is up or its law is broken."""
    name, *options = words
    target = TARGETS[name]
    seeds = target.seeds()

    def mutated(content: bytes, most_bytes: int, number: int) -> bytes:
        """Let libFuzzer's own mutations, which know what is compared with what, be half."""
        choose = random.Random(number).randrange
        if choose(2):
            own: bytes = atheris.Mutate(content, most_bytes)
            return own
        return mutate(content, target, seeds, choose)[:most_bytes]

    atheris.Setup([f"fuzz.guided {name}", *options], target.law, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
