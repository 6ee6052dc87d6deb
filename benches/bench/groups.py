"""Cost of reading who uses a disk by `io.stat`, of this process, with a fake tree of groups."""

import logging
import resource
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from disksla.base.operating_system.roots import Roots
from disksla.kernel.consumers.consumption import WatchedDisk
from disksla.kernel.consumers.io_stat import IoStatReader

NUMBERS = (500, 2_000, 10_000)
OF_SLICE = 100
"""Groups right below another."""
ENTRIES = 60
"""Files of a group, as in cgroup v2 of Linux 6.1 with all controllers."""
SECONDS = 120
BUSY = 20
"""Groups that used the disk since the reading before."""
DESCRIPTORS = 16384


def measure_groups() -> None:
    """Print a row for each number of groups."""
    logging.disable()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    print("| groups | CPU, ms/s | a reading, ms | with a scan, ms |\n|--:|--:|--:|--:|")
    for number in NUMBERS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            print(row(Path(directory), number), flush=True)


def row(sysfs: Path, number: int) -> str:
    """Return what is measured with a number of groups."""
    groups = make_groups(sysfs / "fs" / "cgroup", number)
    disk = WatchedDisk("vda", "253:0", True, 0, 0, None)
    now_s = 0.0
    reader = IoStatReader(Roots(sysfs=sysfs), lambda _: None, lambda: [disk], lambda: now_s)
    reader.groups = type(reader.groups)(Roots(sysfs=sysfs), lambda: now_s + time.process_time())
    took_s = []
    for second in range(SECONDS):
        now_s = float(second)
        write_io_stat(groups[:BUSY], second)
        begin_s = time.process_time()
        reader.read()
        took_s.append(time.process_time() - begin_s)
    reader.close()
    mean_ms, median_ms, most_ms = (
        each * 1e3 for each in (sum(took_s) / SECONDS, median(took_s), max(took_s))
    )
    return f"| {number:,} | {mean_ms:.1f} | {median_ms:.1f} | {most_ms:.0f} |"


def make_groups(top: Path, number: int) -> list[Path]:
    """Make a tree of groups, and return those at its leaves."""
    groups = [top / f"{n // OF_SLICE}.slice" / f"{n}.service" for n in range(number)]
    for group in groups:
        group.mkdir(parents=True)
        for entry in range(ENTRIES):
            (group / f"file{entry}").symlink_to("nothing")
    write_io_stat({top, *groups, *(group.parent for group in groups)}, 0)
    (top / "cgroup.controllers").write_text("io memory pids\n")
    (top / "cgroup.subtree_control").write_text("io\n")
    return groups


def write_io_stat(groups: Iterable[Path], pages: int) -> None:
    """Have groups say that they read so many pages."""
    for group in groups:
        (group / "io.stat").write_text(
            f"253:0 rbytes={pages * 4096} wbytes=0 rios={pages} wios=0 dbytes=0 dios=0\n"
        )
