"""Seeing to it that a disk which is to be measured is not used by others."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disksla.benchmark.idle_check import measure_utilization
from disksla.commands._context import HostContext
from disksla.commands._options import roots_of
from disksla.disks import BENCHMARK_MAX_UTILIZATION, Disk
from disksla.errors import DiskslaError
from disksla.system.lock import measurement_lock


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add --even-if-busy."""
    parser.add_argument(
        "--even-if-busy",
        action="store_true",
        help="measure a disk that others use, which disturbs both them and the numbers",
    )


@contextmanager
def exclusive_measurement(
    arguments: argparse.Namespace, host: HostContext, disk: Disk
) -> Iterator[None]:
    """Keep other measurements away until the end of the block, probes of the daemon among them.

    Raises Refusal if one runs already, or if the disk is busy and that was not asked for.
    """
    with measurement_lock(Path(host.settings.state.directory)) as is_alone:
        if not is_alone:
            raise DiskslaError(
                "another measurement of disksla runs on this machine; try again later"
            )
        _look_for_load(arguments, disk)
        yield


def _look_for_load(arguments: argparse.Namespace, disk: Disk) -> None:
    utilization = measure_utilization(roots_of(arguments), disk.name)
    if utilization < BENCHMARK_MAX_UTILIZATION:
        return
    words = f"{disk.name} is in use: it was busy for {min(utilization, 1):.0%} of the last second"
    if not arguments.even_if_busy:
        raise DiskslaError(
            f"{words}; measure when it is quiet, or say --even-if-busy (both sides get slower)"
        )
    print(f"disksla: {words}; the numbers are those of what is left", file=sys.stderr)
