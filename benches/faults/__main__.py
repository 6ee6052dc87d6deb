"""`make soak`: run a day of ticks, and measure memory."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.soak import ALLOWED_BYTES, DAY_TICKS, HEADER, Soak, growth_bytes, report, usage_row


def _soak(directory: Path, ticks: int, seed: int) -> bool:
    soak = Soak(directory, seed)
    usages = []
    _print(HEADER)
    for usage in soak.run(ticks):
        usages.append(usage)
        _print(usage_row(usage))
    _print(report(soak, usages))
    return growth_bytes(usages) <= ALLOWED_BYTES and not soak.wrong


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if memory grew, or something is wrong."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument(
        "--ticks",
        type=int,
        default=DAY_TICKS,
        help="ticks of 100 ms (default: %(default)s, a day)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the simulated machine (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="disksla-soak-") as directory:
        passed = _soak(Path(directory), options.ticks, options.seed)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
