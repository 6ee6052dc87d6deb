"""Requests by program, compared with loads of known numbers of requests."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.perf_events import close_all, open_sampler
from disksla.kernel.consumers import Consumption
from disksla.kernel.consumers.attribution import NONE_OPEN, UNATTRIBUTED, attributed
from disksla.kernel.consumers.consumption import ConsumerReading, WatchedDisk
from disksla.kernel.consumers.readers import ConsumerReaders
from disksla.kernel.performance_events import EventsRequest, Taken
from disksla.kernel.performance_events.opened import OpenedEvents, open_events
from disksla.kernel.performance_events.opening import REQUESTED, EventFiles
from disksla.kernel.performance_events.protocol import MOST_DISKS, Tracepoint, filter_of_requests
from disksla.kernel.performance_events.request_sampler import RequestSampler
from disksla.kernel.performance_events.source import EventSource
from support.log_events import events
from support.loop_device import attached, needs_loop
from support.opened_events import NO_HELPER, PATIENCE_S, source_of
from support.tracefs import sysfs_with_tracefs
from support.waiting import eventually

EVERY_S = 0.05
SETTLE_S = 0.2
PAGE = 4096
POINTS = 0.02
"""Largest error of a share."""

pytestmark = needs_loop


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Roots]:
    with sysfs_with_tracefs(tmp_path) as found:
        yield found


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "image"
    file.write_bytes(bytes(2**24))
    with attached(file, "--direct-io=on") as device:
        yield device


def by_cgroup(cgroup: int, comm: str) -> tuple[str, str]:
    """Return the names of a consumer and a program as they come."""
    return str(cgroup), comm


class Watch:
    """What was sampled of a disk since it was made."""

    def __init__(self, roots: Roots, device: str, pages: int | None = None) -> None:
        number = Path(f"/dev/{device}").stat().st_rdev
        self._disks = {device: (os.major(number), os.minor(number))}
        self.sampler = RequestSampler(source_of(roots), pages=pages)
        self._before = NONE_OPEN
        self.requests: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.cgroups: set[str] = set()
        assert eventually(self._is_open, PATIENCE_S), self.sampler.why_not
        self.read()

    def _is_open(self) -> bool:
        self.sampler.watch(self._disks, with_bytes=True)
        return self.sampler.take() is not None

    def read(self) -> Taken:
        taken = self.sampler.take()
        assert taken is not None, self.sampler.why_not
        self._before, used = attributed(
            self._before, taken, self._disks, by_cgroup, with_bytes=True
        )
        for each in used:
            self._add(each)
        return taken

    def _add(self, used: Consumption) -> None:
        name = used.program or used.consumer
        self.requests[name] += round(used.requests or 0)
        self.bytes[name] += round(used.bytes or 0)
        if used.consumer != UNATTRIBUTED:
            self.cgroups.add(used.consumer)

    def during(self, load: Callable[[], list[subprocess.Popen[bytes]]]) -> None:
        """Read while programs run."""
        programs = load()
        while any(each.poll() is None for each in programs):
            time.sleep(EVERY_S)
            self.read()
        assert [each.returncode for each in programs] == [0] * len(programs)
        time.sleep(SETTLE_S)
        self.read()


@pytest.fixture
def watch(roots: Roots, disk: str) -> Iterator[Watch]:
    found = Watch(roots, disk)
    yield found
    found.sampler.close()


def named(tmp_path: Path, name: str, program: str) -> str:
    """Return a program under another name, which the kernel shows."""
    path = tmp_path / name
    if not path.exists():
        path.symlink_to(shutil.which(program) or program)
    return str(path)


def writes(tmp_path: Path, name: str, disk: str, count: int) -> subprocess.Popen[bytes]:
    command = [named(tmp_path, name, "dd"), "if=/dev/zero", f"of=/dev/{disk}", "bs=4k"]
    options = [f"count={count}", "oflag=direct", "conv=notrunc", "status=none"]
    return subprocess.Popen([*command, *options])


@pytest.mark.in_check
def test_two_loads_are_told_apart(watch: Watch, disk: str, tmp_path: Path) -> None:
    """All samples fit into the buffer of one CPU, so that a busy machine may read them late."""
    watch.during(
        lambda: [writes(tmp_path, "first", disk, 720), writes(tmp_path, "second", disk, 280)]
    )
    assert watch.requests["first"] == pytest.approx(720, abs=POINTS * 1000)
    assert watch.requests["second"] == pytest.approx(280, abs=POINTS * 1000)
    assert watch.bytes["first"] == pytest.approx(720 * PAGE, rel=POINTS)
    assert watch.bytes["second"] == pytest.approx(280 * PAGE, rel=POINTS)
    assert len(watch.cgroups) == 1


def test_processes_of_one_request(watch: Watch, disk: str, tmp_path: Path) -> None:
    def load() -> list[subprocess.Popen[bytes]]:
        return [writes(tmp_path, "once", disk, 1) for _ in range(200)]

    watch.during(load)
    assert (watch.requests["once"], watch.bytes["once"]) == (200, 200 * PAGE)
    assert watch.requests[UNATTRIBUTED] == 0


ALTERNATE = """
import mmap, os, sys
reads, writes = int(sys.argv[2]), int(sys.argv[3])
disk = os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
while os.read(reads, 1):
    os.pwrite(disk, page, 0)
    os.write(writes, b"x")
"""


def test_programs_that_alternate(watch: Watch, disk: str, tmp_path: Path) -> None:
    """On one CPU, every other request is of the other program: an even period would see one."""
    rounds, period = 1400, 7
    watch.sampler.adapt((1000 * period, 1000 * period), 1.0)
    assert watch.sampler.take() is not None
    cpu = min(os.sched_getaffinity(0))
    pipes = [os.pipe() for _ in range(3)]
    (first, to_first), (second, to_second), (back, to_back) = pipes
    programs = []
    for name, ends in (("ping", (first, to_second)), ("pong", (second, to_back))):
        path = named(tmp_path, name, sys.executable)
        command = ["taskset", "--cpu-list", str(cpu), path, "-c", ALTERNATE, f"/dev/{disk}"]
        programs.append(subprocess.Popen([*command, *map(str, ends)], pass_fds=ends))
    for end in (first, second, to_second, to_back):
        os.close(end)
    for number in range(rounds):
        os.write(to_first, b"x")
        os.read(back, 1)
        if number % 100 == 0:
            watch.read()
    os.close(to_first)
    for program in programs:
        program.wait(PATIENCE_S)
    os.close(back)
    taken = watch.read()
    assert taken.periods == (period, period)
    total = watch.requests["ping"] + watch.requests["pong"]
    assert total == pytest.approx(2 * rounds, rel=POINTS)
    assert watch.requests["ping"] / total == pytest.approx(0.5, abs=POINTS)


def test_what_a_buffer_cannot_hold_is_unattributed(
    roots: Roots, disk: str, tmp_path: Path
) -> None:
    watch = Watch(roots, disk, pages=1)
    assert writes(tmp_path, "first", disk, 500).wait(PATIENCE_S) == 0
    time.sleep(SETTLE_S)
    watch.read()
    watch.sampler.close()
    assert watch.requests["first"] + watch.requests[UNATTRIBUTED] == 500
    assert 0 < watch.requests["first"] < 250
    assert watch.bytes.total() == pytest.approx(500 * PAGE, rel=POINTS)


def test_paused_events_count_nothing(watch: Watch, disk: str, tmp_path: Path) -> None:
    watch.sampler.pause()
    assert writes(tmp_path, "first", disk, 50).wait(PATIENCE_S) == 0
    time.sleep(SETTLE_S)
    taken = watch.read()
    assert (taken.counted, taken.seen) == ((0, 0), Counter())


def test_kernel_takes_the_filter_of_the_most_disks(roots: Roots) -> None:
    request = EventsRequest(
        "requests", tuple(f"4095:{2**20 - n}" for n in range(1, 1 + MOST_DISKS))
    )
    text = f"{filter_of_requests(request.numbers)} && nr_sector>0"
    close_all([open_sampler(0, EventFiles(roots).tracepoint(REQUESTED).number, text)])


def is_after_a_read(readers: ConsumerReaders, condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds after a reading, at last."""

    def read() -> bool:
        readers.read_requests()
        return condition()

    return eventually(read, PATIENCE_S)


def test_requests_are_posted_while_a_disk_is_busy(
    roots: Roots, disk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disksla.kernel.consumers.readers.BUSY_FOR_S", 0.5)
    number = Path(f"/dev/{disk}").stat().st_rdev
    is_busy = True
    posted: list[ConsumerReading] = []
    readers = ConsumerReaders(
        roots,
        partial(open_events, helper=NO_HELPER, files=EventFiles(roots)),
        posted.append,
        lambda: [WatchedDisk(disk, f"{os.major(number)}:{os.minor(number)}", is_busy, 0, 0, None)],
    )

    def of_first() -> tuple[float, float]:
        used = [each for part in posted for each in part.consumers if each.program == "first"]
        return sum(each.requests or 0 for each in used), sum(each.bytes or 0 for each in used)

    assert is_after_a_read(readers, lambda: bool(posted)), readers.sampler.why_not
    assert writes(tmp_path, "first", disk, 300).wait(PATIENCE_S) == 0
    # The bytes are of samples, too: there is no io.stat.
    assert is_after_a_read(readers, lambda: of_first() == (300, 300 * PAGE))
    is_busy = False
    assert is_after_a_read(readers, lambda: not readers.is_sampling)
    assert writes(tmp_path, "first", disk, 100).wait(PATIENCE_S) == 0
    is_busy = True
    before = len(posted)
    assert is_after_a_read(readers, lambda: len(posted) > before + 1)
    assert of_first() == (300, 300 * PAGE)
    readers.sampler.close()


def test_of_a_disk_that_is_not_busy_nothing_is_posted(
    roots: Roots, disk: str, tmp_path: Path
) -> None:
    """Its requests are sampled beside those of a busy one: events are of all disks."""
    posted: list[ConsumerReading] = []
    file = tmp_path / "idle"
    file.write_bytes(bytes(4 * 2**20))
    with attached(file, "--direct-io=on") as idle:
        numbers = {each: Path(f"/dev/{each}").stat().st_rdev for each in (disk, idle)}
        watched = [
            WatchedDisk(each, f"{os.major(number)}:{os.minor(number)}", each == disk, 0, 0, None)
            for each, number in numbers.items()
        ]
        opener = partial(open_events, helper=NO_HELPER, files=EventFiles(roots))
        readers = ConsumerReaders(roots, opener, posted.append, lambda: watched)

        def has_all() -> bool:
            used = [each for part in posted for each in part.consumers]
            return sum(each.requests or 0 for each in used if each.program == "second") == 30

        assert is_after_a_read(readers, lambda: readers.is_sampling)
        assert writes(tmp_path, "first", idle, 50).wait(PATIENCE_S) == 0
        assert writes(tmp_path, "second", disk, 30).wait(PATIENCE_S) == 0
        assert is_after_a_read(readers, has_all)
        readers.sampler.close()
    assert {device for part in posted for device in part.watched_s} == {disk}
    assert {each.device for part in posted for each in part.consumers} == {disk}


def test_records_of_an_unknown_kernel_are_counted_and_said_once(
    roots: Roots, disk: str, caplog: pytest.LogCaptureFixture
) -> None:
    number = Path(f"/dev/{disk}").stat().st_rdev
    disks = {disk: (os.major(number), os.minor(number))}

    def opener(request: EventsRequest, online: str) -> OpenedEvents:
        found = open_events(request, online, NO_HELPER, EventFiles(roots))
        return found._replace(record=Tracepoint(1, 30))

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- descriptors, not files
    sampler = RequestSampler(EventSource(opener, "consumers", roots.sysfs, between_s=0.0))

    def watch() -> bool:
        sampler.watch(disks, with_bytes=True)
        return sampler.why_not is not None

    assert eventually(watch, PATIENCE_S)
    assert not eventually(lambda: watch() and sampler.take() is not None, 0.3)
    assert sampler.why_not is not None
    assert "found the name of a program at offset 30; this kernel is not known" in sampler.why_not
    assert sampler.health == ("consumers", 1, False, sampler.why_not)
    assert [event.message for event in events(caplog)] == ["requests not sampled"]
    sampler.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
