"""`make soak`: a day of ticks, and whether the memory of what took them stayed flat."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.soak import ALLOWED_BYTES, DAY_TICKS, Soak, growth_bytes, report


def main(words: Sequence[str] | None = None) -> int:
    """Soak, print the table, and tell by the status whether memory stayed flat."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--ticks", type=int, default=DAY_TICKS, help="of 100 ms")
    parser.add_argument("--seed", type=int, default=1, help="of what the machine goes through")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="disksla-soak-") as directory:
        soak = Soak(Path(directory), arguments.seed)
        weights = list(soak.run(arguments.ticks))
    sys.stdout.write(report(soak, weights) + "\n")
    return 0 if growth_bytes(weights) <= ALLOWED_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
