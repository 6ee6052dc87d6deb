"""Fuzz one target with atheris, which keeps the mutations that increase coverage.

Usage: python -m fuzz.guided TARGET LIBFUZZER-OPTION... CORPUS
"""

import contextlib
import hashlib
import io
import os
import random
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import atheris

from fuzz.mutation import mutate
from fuzz.target import SEEDS, Target

with (
    contextlib.redirect_stderr(io.StringIO()),  # atheris names each module
    atheris.instrument_imports(include=["disksla"]),
):
    from fuzz.targets import TARGETS


WRITTEN = "Test unit written to "
"""The text that libFuzzer prints before the name of a file; this module prints it too."""
FAILED = 77
"""The exit status of libFuzzer for a finding."""


def save(target: Target, content: bytes) -> Path:
    """Write the content of a finding to the seeds of the target."""
    path = SEEDS / target.name / f"crash-{hashlib.sha256(content).hexdigest()[:16]}"
    path.write_bytes(content)
    return path


def main(arguments: Sequence[str]) -> None:
    """Fuzz one target until the time is up or its check fails."""
    name, *options = arguments
    target = TARGETS[name]
    seeds = target.seeds()

    def check(content: bytes) -> None:
        """Save content that fails the check, and exit at once, without waiting for threads."""
        try:
            target.check(content)
        except BaseException:  # noqa: BLE001 -- each exception is a finding
            traceback.print_exc()
            sys.stderr.write(f"{WRITTEN}{save(target, content)}\n")
            sys.stderr.flush()
            os._exit(FAILED)

    def mutated(content: bytes, most_bytes: int, number: int) -> bytes:
        """Mutate by libFuzzer, which uses the operands of comparisons, half of the time."""
        choose = random.Random(number).randrange
        if choose(2):
            by_libfuzzer: bytes = atheris.Mutate(content, most_bytes)
            return by_libfuzzer
        return mutate(content, target, seeds, choose)[:most_bytes]

    atheris.Setup([f"fuzz.guided {name}", *options], check, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
