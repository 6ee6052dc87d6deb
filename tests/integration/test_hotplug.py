"""Detection of added, removed, resized and mounted disks, and their list."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.hotplug import DiskWatcher
from disksla.kernel.disks.inventory import Inventory, read_disks
from support import ttar
from support.log_events import events
from support.loop_device import add_partition, added, attached, needs_loop
from support.waiting import eventually

HOSTS = Path(__file__).parent.parent / "hosts"
WITHIN_S = 1.0
SIZE_BYTES = 8 * 1024**2
LONG_PERIOD_S = 600.0
"""A period so long that only events start a scan."""

Disks = tuple[Disk, ...]


class Received:
    """The disks that a watcher has reported."""

    def __init__(self) -> None:
        self.reports: list[Disks] = []

    @property
    def disks(self) -> Disks:
        """Return all disks of the last report."""
        return self.reports[-1] if self.reports else ()

    def __call__(self, disks: Disks) -> None:
        self.reports.append(disks)

    def of(self, name: str) -> Disk | None:
        """Return a disk of the last report."""
        return next((disk for disk in self.disks if disk.name == name), None)

    def lacks(self, name: str) -> bool:
        return self.of(name) is None


@contextmanager
def watching(
    paths: Roots, on_change: Callable[[Disks], None], period_s: float = LONG_PERIOD_S
) -> Iterator[DiskWatcher]:
    watcher = DiskWatcher(paths, on_change, period_s)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()


@pytest.fixture
def tree(tmp_path: Path) -> Roots:
    for archive in (HOSTS / "vm-virtio-6.x").glob("*.ttar"):
        ttar.unpack(archive, tmp_path)
    return Roots(procfs=tmp_path / "proc", sysfs=tmp_path / "sys", udev_data=tmp_path / "udev")


def test_disks_are_reported_once_at_the_start(tree: Roots) -> None:
    names = ["10.0.0.5:/export", "loop0", "loop1", "vda"]
    received = Received()
    with watching(tree, received, period_s=0.001) as watcher:
        assert eventually(lambda: len(received.reports) == 1, WITHIN_S)
        assert eventually(lambda: watcher.health == ("disks", 0, True, None), WITHIN_S)
        assert not eventually(lambda: len(received.reports) > 1, within_s=0.35)
    assert [disk.name for disk in received.reports[0]][:4] == names


@pytest.mark.in_check
def test_rescan_reports_a_change(tree: Roots) -> None:
    received = Received()
    with watching(tree, received) as watcher:
        assert eventually(lambda: len(received.reports) == 1, WITHIN_S)
        (tree.sysfs / "class/block/vdb/size").write_text("2097152\n")
        watcher.rescan()
        assert eventually(lambda: len(received.reports) == 2, WITHIN_S)
    disk = received.of("vdb")
    assert disk is not None
    assert disk.size_bytes == 1024**3


def test_periodic_scan_reports_a_change_without_event(tree: Roots) -> None:
    received = Received()
    with watching(tree, received, period_s=0.01):
        assert eventually(lambda: len(received.reports) == 1, WITHIN_S)
        (tree.sysfs / "class/block/vdb").unlink()
        assert eventually(lambda: received.of("vdb") is None, WITHIN_S)


def test_stop_does_not_wait_for_the_period(tree: Roots) -> None:
    watcher = DiskWatcher(tree, Received(), LONG_PERIOD_S)
    watcher.start()
    assert eventually(lambda: bool(watcher.health.works), WITHIN_S)
    watcher.stop()  # which would take LONG_PERIOD_S
    assert not watcher.health.works
    watcher.rescan()


def test_problem_is_counted_and_logged_once(tree: Roots, caplog: pytest.LogCaptureFixture) -> None:
    size = tree.sysfs / "class/block/vdb/size"
    size.write_text("many\n")
    received = Received()
    with watching(tree, received) as watcher:
        assert eventually(lambda: bool(watcher.health.works), WITHIN_S)
        for name in ("vda1", "vda2"):
            (tree.sysfs / "class/block" / name).unlink()
            watcher.rescan()
            assert eventually(partial(received.lacks, name), WITHIN_S)
        assert watcher.health.errors == 1
        assert [event.fields["err"] for event in events(caplog)] == [watcher.health.problem]
        problem = watcher.health.problem or ""
        assert "vdb/size: found 'many\\n'; expected a whole number" in problem
        size.write_text("8\n")
        watcher.rescan()
        assert eventually(lambda: watcher.health == ("disks", 1, True, None), WITHIN_S)
        assert received.of("vdb") is not None


def test_tree_that_is_gone_is_an_error_not_an_empty_set(tree: Roots) -> None:
    received = Received()
    listing = tree.sysfs / "class"
    with watching(tree, received) as watcher:
        assert eventually(lambda: bool(watcher.health.works), WITHIN_S)
        listing.rename(tree.sysfs / "away")
        watcher.rescan()
        assert eventually(lambda: not watcher.health.works, WITHIN_S)
        assert "cannot list block devices" in (watcher.health.problem or "")
        (tree.sysfs / "away").rename(listing)
        watcher.rescan()
        assert eventually(lambda: watcher.health == ("disks", 1, True, None), WITHIN_S)
    assert len(received.reports) == 1


def test_failure_of_the_callback_does_not_stop_discovery(tree: Roots) -> None:
    received = Received()
    failures = iter([ValueError("not now")])

    def fail_once(disks: Disks) -> None:
        for failure in failures:
            raise failure
        received(disks)

    with watching(tree, fail_once) as watcher:
        assert eventually(lambda: watcher.health.errors == 1, WITHIN_S)
        assert watcher.health.problem == "disk discovery failed: ValueError: not now"
        assert eventually(lambda: len(received.reports) == 1, within_s=3.0)
        assert eventually(lambda: watcher.health == ("disks", 1, True, None), WITHIN_S)


@pytest.mark.in_check
@needs_loop
def test_added_and_removed_disk_is_reported_within_a_second() -> None:
    received = Received()
    with watching(Roots(), received) as watcher:
        assert eventually(lambda: bool(watcher.health.works), WITHIN_S)
        with added(range(861, 862)) as (name,):
            assert eventually(lambda: received.of(name) is not None, WITHIN_S)
        assert eventually(lambda: received.of(name) is None, WITHIN_S)
        assert watcher.health == ("disks", 0, True, None)


@needs_loop
def test_resized_disk_is_reported_within_a_second(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.touch()
    os.truncate(file, SIZE_BYTES)
    received = Received()

    def size_of(name: str) -> int | None:
        disk = received.of(name)
        return None if disk is None else disk.size_bytes

    with watching(Roots(), received) as watcher:
        assert eventually(lambda: bool(watcher.health.works), WITHIN_S)
        with attached(file) as loop:
            assert eventually(lambda: size_of(loop) == SIZE_BYTES, WITHIN_S)
            os.truncate(file, 2 * SIZE_BYTES)
            subprocess.run(["losetup", "--set-capacity", f"/dev/{loop}"], check=True)
            assert eventually(lambda: size_of(loop) == 2 * SIZE_BYTES, WITHIN_S)
        assert eventually(lambda: size_of(loop) == 0, WITHIN_S)


@needs_loop
def test_burst_of_new_disks_is_few_scans() -> None:
    received = Received()
    with watching(Roots(), received) as watcher:
        assert eventually(lambda: bool(watcher.health.works), WITHIN_S)
        before = len(received.reports)
        with added(range(600, 640)) as names:
            assert eventually(
                lambda: set(names) <= {disk.name for disk in received.reports[-1]}, 2 * WITHIN_S
            )
            assert len(received.reports) - before <= 5
            assert watcher.health == ("disks", 0, True, None)


@needs_loop
def test_overflow_of_the_event_socket_is_not_an_error() -> None:
    received = Received()
    with watching(Roots(), received) as watcher, added(range(641, 643)) as (one, other):
        assert eventually(lambda: received.of(one) is not None, WITHIN_S)
        with Path(f"/sys/class/block/{one}/uevent").open("wb", buffering=0) as uevent:
            uevent.writelines([b"change"] * 3000)
        assert eventually(lambda: received.of(other) is not None, WITHIN_S)
        with added(range(643, 644)) as (third,):
            assert eventually(lambda: received.of(third) is not None, WITHIN_S)
        assert watcher.health == ("disks", 0, True, None)


def run_in_process(program: str, *arguments: str | Path, prefix: tuple[str, ...] = ()) -> None:
    """Run a test in a separate process, because it restricts what the process may do or see."""
    if prefix and subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("NOT TESTED: needs a separate mount namespace")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*prefix, sys.executable, "-W", "error", "-c", PREAMBLE + program, *arguments]
    subprocess.run(command, check=True, env=environment)


PREAMBLE = """
import subprocess, sys
from disksla.kernel.disks.inventory import read_disks
from disksla.kernel.disks.hotplug import DiskWatcher
from disksla.base.operating_system.machine import Roots
from support.loop_device import added, attached
from support.waiting import eventually

reports = []
watcher = DiskWatcher(Roots(), reports.append, period_s=600.0)
"""
MOUNT = """
with attached(sys.argv[1]) as loop:
    watcher.start()
    mount_points = lambda: next(disk.mount_points for disk in reports[-1] if disk.name == loop)
    assert eventually(lambda: bool(watcher.health.works), 10.0)
    subprocess.run(["mount", f"/dev/{loop}", sys.argv[2]], check=True)
    assert eventually(lambda: mount_points() == (sys.argv[2],), 10.0), mount_points()
    subprocess.run(["umount", sys.argv[2]], check=True)
    assert eventually(lambda: mount_points() == (), 10.0), mount_points()
    watcher.stop()
"""
WITHOUT_NETLINK = """
import ctypes, struct

# seccomp: the socket call (41) returns EAFNOSUPPORT (97) for AF_NETLINK (16).
lines = [(0x20, 0, 0, 0), (0x15, 0, 3, 41), (0x20, 0, 0, 16), (0x15, 0, 1, 16),
         (0x06, 0, 0, 0x50000 | 97), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
sock_filter = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program))
assert libc.prctl(22, 2, sock_filter) == 0, ctypes.get_errno()

watcher.start()
assert eventually(lambda: bool(watcher.health.works), 10.0)
assert watcher.health.errors == 1
problem = watcher.health.problem
assert problem.startswith("cannot listen to uevents: "), problem
with added(range(851, 852)) as (name,):
    watcher.rescan()
    assert eventually(lambda: name in {disk.name for disk in reports[-1]}, 10.0)
watcher.stop()
"""
WITHOUT_LIBUDEV = """
inventory = read_disks(Roots())
(problem,) = inventory.problems
assert problem.startswith("cannot load libudev: "), problem
assert inventory.disks
watcher.start()
assert eventually(lambda: watcher.health == ("disks", 1, True, problem), 10.0), watcher.health
assert reports == [inventory.disks]
watcher.stop()
"""


@needs_loop
@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="NOT TESTED: needs mkfs.ext4")
def test_mount_and_umount_are_reported_within_a_second(tmp_path: Path) -> None:
    file, directory = tmp_path / "disk", tmp_path / "data base"
    file.touch()
    directory.mkdir()
    os.truncate(file, SIZE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", file], check=True)
    run_in_process(MOUNT, file, directory, prefix=("unshare", "--mount"))


@needs_loop
@pytest.mark.skipif(platform.machine() != "x86_64", reason="NOT TESTED: system call numbers")
def test_sandbox_without_netlink_is_reported_once_and_rescan_works() -> None:
    run_in_process(WITHOUT_NETLINK)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: hiding libudev needs root")
def test_machine_without_libudev_is_read_from_files() -> None:
    cache = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True)
    library = re.search(r"libudev\.so\S* .*=> (\S+)", cache.stdout)
    assert library is not None
    hide = f'mount --bind /dev/null {Path(library[1]).resolve()} && exec "$@"'
    run_in_process(WITHOUT_LIBUDEV, prefix=("unshare", "--mount", "sh", "-c", hide, "sh"))


DEFAULT = Roots()


def by_name(inventory: Inventory) -> dict[str, Disk]:
    return {disk.name: disk for disk in inventory.disks}


@pytest.mark.in_check
@needs_loop
def test_real_disk_and_its_partition(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.touch()
    with file.open("r+b") as image:
        image.truncate(SIZE_BYTES)
    with attached(file) as loop:
        add_partition(loop, start_bytes=1024**2, size_bytes=SIZE_BYTES // 2)
        disks = by_name(read_disks(DEFAULT))
        disk, partition = disks[loop], disks[f"{loop}p1"]
        assert (disk.major, disk.size_bytes, disk.partition_of) == (7, SIZE_BYTES, None)
        assert (partition.size_bytes, partition.partition_of) == (SIZE_BYTES // 2, loop)
        assert partition.diskseq == disk.diskseq
    later = by_name(read_disks(DEFAULT))
    assert f"{loop}p1" not in later
