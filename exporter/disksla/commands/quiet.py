"""Seeing to it that a disk which is to be measured is not used by others."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disksla.commands.machine import Machine
from disksla.commands.options import paths_of
from disksla.core.disk import Disk
from disksla.core.refusal import Refusal
from disksla.runtime.alone import alone
from disksla.runtime.busyness import busy_share

_BUSY_SHARE = 0.1


def add_even_if_busy(parser: argparse.ArgumentParser) -> None:
    """Add --even-if-busy."""
    parser.add_argument(
        "--even-if-busy",
        action="store_true",
        help="measure a disk that others use, which disturbs both them and the numbers",
    )


@contextmanager
def undisturbed(arguments: argparse.Namespace, machine: Machine, disk: Disk) -> Iterator[None]:
    """Keep other measurements away until the end of the block, probes of the daemon among them.

    Raises Refusal if one runs already, or if the disk is busy and that was not asked for.
    """
    with alone(Path(machine.settings.state.directory)) as is_alone:
        if not is_alone:
            raise Refusal("another measurement of disksla runs on this machine; try again later")
        _look_for_load(arguments, disk)
        yield


def _look_for_load(arguments: argparse.Namespace, disk: Disk) -> None:
    share = busy_share(paths_of(arguments), disk.name)
    if share < _BUSY_SHARE:
        return
    words = f"{disk.name} is in use: it was busy for {min(share, 1):.0%} of the last second"
    if not arguments.even_if_busy:
        raise Refusal(
            f"{words}; measure when it is quiet, or say --even-if-busy (both sides get slower)"
        )
    print(f"disksla: {words}; the numbers are those of what is left", file=sys.stderr)
