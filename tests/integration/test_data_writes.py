"""Exact counts of data writes, compared with the kernel's own trace of requests."""

import errno
import mmap
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.perf_events import EventGroup, close_all, open_counters
from disksla.kernel.performance_events.data_writes import Counts, DataWriteCounters
from disksla.kernel.performance_events.opening import COMPLETED, EventFiles, plan
from disksla.kernel.performance_events.protocol import EventsRequest
from disksla.kernel.performance_events.source import Numbers
from disksla.kernel.procfs import Counters, parse_line, to_counters
from disksla.kernel.procfs.files import DiskstatsFile
from support.daemon_process import DISKSLA
from support.loop_device import attached, needs_loop
from support.opened_events import counting, read_once_open
from support.tracefs import sysfs_with_tracefs, traced

WRITES = 200
SETTLE_S = 0.2
"""A request is counted in the context of an interrupt, maybe shortly after a program goes on."""
DISK_BYTES = 320 * 2**20
"""XFS needs 300 MiB."""
DIRECT = "--direct-io=on"
TRACEPOINT = Path("kernel/tracing/events/block/block_rq_complete")

EXT4 = ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard")
"""Without writes in the background."""
XFS = ("mkfs.xfs", "-q", "-f")

pytestmark = needs_loop


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Roots]:
    with sysfs_with_tracefs(tmp_path) as found:
        yield found


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    """Return the kernel name of a loop device with a write-back cache."""
    file = tmp_path / "image"
    with file.open("wb") as image:
        os.posix_fallocate(image.fileno(), 0, DISK_BYTES)
    with attached(file, DIRECT) as device:
        cache = Path(f"/sys/block/{device}/queue/write_cache").read_text(encoding="ascii")
        assert cache == "write back\n"
        yield device


def number_of(device: str) -> tuple[int, int]:
    status = Path(f"/dev/{device}").stat()
    return os.major(status.st_rdev), os.minor(status.st_rdev)


def writes_with_fdatasync(device: str, writes: int = WRITES) -> None:
    page = mmap.mmap(-1, 8192)
    descriptor = os.open(f"/dev/{device}", os.O_RDWR | os.O_DIRECT)
    for number in range(writes):
        os.pwrite(descriptor, page, number * 8192)
        os.fdatasync(descriptor)
    os.close(descriptor)


def kernel_counters(device: str) -> Counters:
    file = DiskstatsFile(Path("/proc"))
    [line] = [line for line in file.read().splitlines() if line.split()[2] == device]
    file.close()
    return to_counters(parse_line(line).reading)


class Counted:
    """What one load did, as three sources count it."""

    def __init__(self, roots: Roots, device: str, load: Callable[[], None]) -> None:
        number = number_of(device)
        disks = {device: number}
        with counting(roots) as counters, traced(roots, *number) as trace:
            _, before = read_once_open(counters, disks)[device]
            counted_before = kernel_counters(device)
            traced_before = trace.data_writes()
            load()
            time.sleep(SETTLE_S)
            (_, after), counted = self._read(counters, disks)[device], kernel_counters(device)
            self.traced = trace.data_writes() - traced_before
        self.exact = after - before
        self.writes = (counted.writes or 0) - (counted_before.writes or 0)
        self.flushes = (counted.flushes or 0) - (counted_before.flushes or 0)
        self.discards = (counted.discards or 0) - (counted_before.discards or 0)

    @staticmethod
    def _read(counters: DataWriteCounters, disks: Numbers) -> Counts:
        counts, problems = counters.read(disks)
        assert problems == {}
        return counts


@pytest.mark.in_check
def test_writes_with_fdatasync_are_counted_once(roots: Roots, disk: str) -> None:
    counted = Counted(roots, disk, lambda: writes_with_fdatasync(disk))
    assert counted.exact == counted.traced == WRITES
    assert counted.writes > 1.9 * WRITES, "the kernel counts the flushes, too"


@pytest.mark.parametrize("make", [EXT4, XFS])
@pytest.mark.parametrize("how", ["dsync", "fdatasync"])
def test_file_systems(
    roots: Roots, disk: str, tmp_path: Path, make: tuple[str, ...], how: str
) -> None:
    if shutil.which(make[0]) is None:
        pytest.skip(f"NOT TESTED: needs {make[0]}")
    subprocess.run([*make, f"/dev/{disk}"], check=True)
    with mounted(disk, tmp_path / "mounted") as directory:
        file = directory / "file"
        file.write_bytes(bytes(WRITES * 8192))
        os.sync()

        def write() -> None:
            flags = os.O_WRONLY | (os.O_DSYNC if how == "dsync" else 0)
            descriptor = os.open(file, flags)
            for position in range(WRITES):
                os.pwrite(descriptor, b"1" * 8192, position * 8192)
                if how == "fdatasync":
                    os.fdatasync(descriptor)
            os.close(descriptor)

        counted = Counted(roots, disk, write)
        assert counted.exact == counted.traced >= WRITES
        assert counted.exact <= counted.writes
        assert counted.writes - counted.flushes <= counted.exact


@contextmanager
def mounted(device: str, directory: Path) -> Iterator[Path]:
    directory.mkdir()
    subprocess.run(["mount", f"/dev/{device}", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def test_reads_and_discards_are_not_counted_and_zeroing_is(roots: Roots, disk: str) -> None:
    def discard() -> None:
        subprocess.run([*command, f"/dev/{disk}"], check=True)

    def zero() -> None:
        subprocess.run([*command, "--zeroout", f"/dev/{disk}"], check=True)

    command = ("blkdiscard", "--force", "--length", "1MiB")
    counted = Counted(roots, disk, discard)
    assert (counted.exact, counted.writes) == (0, 0)
    assert counted.discards > 0
    counted = Counted(roots, disk, zero)
    assert counted.exact == counted.writes - counted.flushes > 0


def test_other_disks_are_not_counted(roots: Roots, disk: str, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(bytes(2**22))
    with attached(file, DIRECT) as other:
        disks = {disk: number_of(disk), other: number_of(other)}
        with counting(roots) as counters:
            before = read_once_open(counters, disks)
            writes_with_fdatasync(other, 30)
            time.sleep(SETTLE_S)
            after, _ = counters.read(disks)
    assert after[disk] == before[disk]
    assert after[other] == (before[other][0], before[other][1] + 30)


@contextmanager
def mapped(disk: str) -> Iterator[str]:
    """Create a device of device-mapper on a disk, and yield its kernel name."""
    if shutil.which("dmsetup") is None:
        pytest.skip("NOT TESTED: device-mapper needs dmsetup")
    name = f"disksla-{os.getpid()}"
    table = f"0 {DISK_BYTES // 512} linear /dev/{disk} 0"
    command = ["dmsetup", "create", "--noudevsync", name, "--table", table]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"NOT TESTED: no device-mapper: {made.stderr.splitlines()[0]}")
    try:
        yield Path(f"/dev/mapper/{name}").resolve().name
    finally:
        subprocess.run(["dmsetup", "remove", "--noudevsync", name], check=True)


@contextmanager
def compressed(_: str) -> Iterator[str]:
    """Create a device of zram, and yield its kernel name."""
    control = Path("/sys/class/zram-control")
    if not control.exists():
        pytest.skip("NOT TESTED: no zram: /sys/class/zram-control is missing")
    name = f"zram{(control / 'hot_add').read_text().strip()}"
    try:
        Path(f"/sys/block/{name}/disksize").write_text("64M")
        yield name
    finally:
        Path(f"/sys/block/{name}/reset").write_text("1")
        (control / "hot_remove").write_text(name.removeprefix("zram"))


@pytest.mark.parametrize("made", [mapped, compressed])
def test_device_without_requests_of_its_own_counts_nothing(
    roots: Roots, disk: str, made: Callable[[str], AbstractContextManager[str]]
) -> None:
    """So that the number of its data writes stays unknown, instead of wrong."""
    with made(disk) as device:
        counted = Counted(roots, device, lambda: writes_with_fdatasync(device, 30))
        assert (counted.exact, counted.writes >= 30) == (0, True)


def test_counters_are_opened_again_when_disks_or_cpus_change(
    roots: Roots, disk: str, tmp_path: Path
) -> None:
    sysfs = tmp_path / "other-sys"
    online = sysfs / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    online.write_text("0\n")
    (sysfs / "kernel").symlink_to(roots.sysfs / "kernel")
    (sysfs / "dev").symlink_to("/sys/dev")
    disks = {disk: number_of(disk)}
    with counting(Roots(sysfs=sysfs)) as counters:
        openings = [read_once_open(counters, disks)[disk][0] for _ in range(2)]
        online.write_text(Path("/sys/devices/system/cpu/online").read_text(encoding="ascii"))
        writes_with_fdatasync(disk, 10)
        openings += [read_once_open(counters, disks)[disk][0] for _ in range(2)]
        other = {disk: number_of(disk), "another": another_than(disk)}
        openings.append(read_once_open(counters, other)[disk][0])
        assert counters.read({}) == ({}, {})
        openings.append(read_once_open(counters, disks)[disk][0])
    if os.cpu_count() != 1:
        assert openings[:4] == [1, 1, 2, 2]
    assert openings[4] == openings[3] + 1
    assert openings[5] > openings[4]


def another_than(disk: str) -> tuple[int, int]:
    """Return the number of any other block device."""
    own = ":".join(map(str, number_of(disk)))
    found = next(each.name for each in Path("/sys/dev/block").iterdir() if each.name != own)
    major, minor = found.split(":")
    return int(major), int(minor)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_events_that_cannot_be_opened_leave_nothing_open(roots: Roots) -> None:
    tracepoint = int((roots.sysfs / TRACEPOINT / "id").read_text())
    for cpu, text, code in ((4000, "dev==1", errno.ENODEV), (0, "nonsense==1", errno.EINVAL)):
        before = descriptors()
        with pytest.raises(OSError, match=r".") as failed:
            open_counters(cpu, tracepoint, ["dev==2", text])
        assert failed.value.errno in {code, errno.EINVAL}
        assert descriptors() == before
    opened = open_counters(0, tracepoint, ["dev==1", "dev==2"])
    assert EventGroup(opened).read() == (0, 0)
    close_all(opened)


def test_format_of_the_tracepoint_as_a_credential(roots: Roots, disk: str, tmp_path: Path) -> None:
    directory = tmp_path / "credentials"
    directory.mkdir()
    shutil.copyfile(roots.sysfs / TRACEPOINT / "format", directory / COMPLETED)
    number = ":".join(map(str, number_of(disk)))
    prepared = plan(EventsRequest("data_writes", (number,)), EventFiles(Roots(), directory))
    for _, opened in prepared.open():
        assert EventGroup(opened).read() == (0,)
        close_all(opened)


def explained(roots: Roots, disk: str, tmp_path: Path, *before: str) -> str:
    """Return what `disksla explain` prints of a disk that is flushed, in one line."""
    config = tmp_path / "config.yml"
    config.write_text(f"discovery: {{include: ['^{disk}$']}}\n")
    config.chmod(0o644)
    command = [*before, str(DISKSLA), "explain", disk, "--config.file", str(config)]
    options = ["--path.sysfs", str(roots.sysfs), "--for", "3s"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            writes_with_fdatasync(disk, 20)
            time.sleep(0.01)
        assert process.stdout is not None
        assert process.returncode == 0
        return " ".join(process.stdout.read().split())


def test_explain_uses_exact_counts_by_itself(roots: Roots, disk: str, tmp_path: Path) -> None:
    assert "Its data writes are counted exactly" in explained(roots, disk, tmp_path)


def test_unprivileged_process_goes_on_without(roots: Roots, disk: str, tmp_path: Path) -> None:
    for directory in (tmp_path, *tmp_path.parents[:3]):
        directory.chmod(directory.stat().st_mode | 0o055)
    unprivileged = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if subprocess.run([*unprivileged, str(DISKSLA), "--version"], check=False).returncode:
        pytest.skip("NOT TESTED: other users cannot run this checkout")
    text = explained(roots, disk, tmp_path, *unprivileged)
    assert "only known between two bounds. They were not counted exactly" in text
    assert "Permission denied" in text
