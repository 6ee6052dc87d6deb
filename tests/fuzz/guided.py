"""One target under atheris, which keeps the mutations that reach what nothing reached before.

python -m fuzz.guided TARGET OPTION-OF-LIBFUZZER... CORPUS
"""

import hashlib
import os
import random
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import atheris

from fuzz.mutation import mutate
from fuzz.target import FOUND, Target

with atheris.instrument_imports(include=["disksla"]):
    from fuzz.targets import TARGETS


WRITTEN = "Test unit written to "
"""What libFuzzer says before the name of a file, and so do we."""
BROKEN = 77
"""Its exit status too."""


def keep(target: Target, content: bytes) -> Path:
    """Write down what broke the law."""
    path = FOUND / target.name / f"crash-{hashlib.sha256(content).hexdigest()[:16]}"
    path.write_bytes(content)
    return path


def main(words: Sequence[str]) -> None:
    """Try one target until time is up or its law is broken."""
    name, *options = words
    target = TARGETS[name]
    seeds = target.seeds()

    def law(content: bytes) -> None:
        """Keep what breaks the law, and end at once: threads of a server would not let us."""
        try:
            target.law(content)
        except BaseException:  # noqa: BLE001 -- whatever it is, it ends this
            traceback.print_exc()
            sys.stderr.write(f"{WRITTEN}{keep(target, content)}\n")
            sys.stderr.flush()
            os._exit(BROKEN)

    def mutated(content: bytes, most_bytes: int, number: int) -> bytes:
        """Let libFuzzer's own mutations, which know what is compared with what, be half."""
        choose = random.Random(number).randrange
        if choose(2):
            own: bytes = atheris.Mutate(content, most_bytes)
            return own
        return mutate(content, target, seeds, choose)[:most_bytes]

    atheris.Setup([f"fuzz.guided {name}", *options], law, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
