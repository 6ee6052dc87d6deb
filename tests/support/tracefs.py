"""The trace file system, at a directory of the test, and a trace of the requests of a disk."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots

COMPLETED = re.compile(r"block_rq_complete: (\d+),(\d+) (\w+) \([^)]*\) \d+ \+ (\d+) ")
"""A request in the format of the trace: device, kind and sectors."""


@contextmanager
def sysfs_with_tracefs(directory: Path) -> Iterator[Roots]:
    """Yield roots of this machine, with tracefs mounted at its place, wherever it is otherwise."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: exact counts of data writes need root")
    sysfs = directory / "sys"
    tracing = sysfs / "kernel" / "tracing"
    tracing.mkdir(parents=True)
    for name in ("class", "dev", "devices"):
        (sysfs / name).symlink_to(f"/sys/{name}")
    mounted = subprocess.run(["mount", "-t", "tracefs", "none", str(tracing)], check=False)
    if mounted.returncode or not (tracing / "events/block/block_rq_complete/id").exists():
        pytest.skip("NOT TESTED: this kernel has no tracepoint block_rq_complete")
    try:
        yield Roots(sysfs=sysfs)
    finally:
        subprocess.run(["umount", str(tracing)], check=True)


class RequestTrace:
    """The kernel's own trace of completed requests, which counts nothing."""

    def __init__(self, instance: Path, major: int, minor: int) -> None:
        self._file = instance / "trace"
        self._numbers = str(major), str(minor)

    def data_writes(self) -> int:
        """Return how many writes with sectors completed since the trace began."""
        requests = COMPLETED.findall(self._file.read_text(encoding="ascii"))
        return sum(
            (major, minor) == self._numbers and int(sectors) > 0 and kind[0] not in "RD"
            for major, minor, kind, sectors in requests
        )


@contextmanager
def traced(roots: Roots, major: int, minor: int) -> Iterator[RequestTrace]:
    """Trace the requests of a disk in an instance of its own, and remove it afterwards."""
    instance = roots.sysfs / "kernel" / "tracing" / "instances" / f"disksla-{os.getpid()}"
    instance.mkdir()
    try:
        (instance / "buffer_size_kb").write_text("4096")
        (instance / "events/block/block_rq_complete/enable").write_text("1")
        yield RequestTrace(instance, major, minor)
    finally:
        (instance / "events/block/block_rq_complete/enable").write_text("0")
        instance.rmdir()
