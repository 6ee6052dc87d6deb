"""Seeing to it that a disk which is to be measured is not used by others."""

import argparse
import sys

from disksla.core.disk import Disk
from disksla.core.refusal import Refusal
from disksla.runtime.busyness import busy_share
from disksla.runtime.paths import Paths

_BUSY_SHARE = 0.1


def add_even_if_busy(parser: argparse.ArgumentParser) -> None:
    """Add --even-if-busy."""
    parser.add_argument(
        "--even-if-busy",
        action="store_true",
        help="measure a disk that others use, which disturbs both them and the numbers",
    )


def see_that_it_is_quiet(arguments: argparse.Namespace, paths: Paths, disk: Disk) -> None:
    """Watch a disk for a second. Raises Refusal if it is busy, or warns if that is asked for."""
    share = busy_share(paths, disk.name)
    if share < _BUSY_SHARE:
        return
    words = f"{disk.name} is in use: it was busy for {min(share, 1):.0%} of the last second"
    if not arguments.even_if_busy:
        raise Refusal(
            f"{words}; measure when it is quiet, or say --even-if-busy (both sides get slower)"
        )
    print(f"disksla: {words}; the numbers are those of what is left", file=sys.stderr)
