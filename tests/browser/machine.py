"""A machine for the real daemon: its procfs and sysfs are files that simulated disks write."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from disksla.base.units import GIB
from support.simulated_limiter import DEVICE, Scenario, run
from support.sysfs_tree import add_device

_STEP_S = 0.01
_STEPS = 10
"""Close samples per tick."""
_WIDTH = 240
"""Lines have a fixed width, so that a file never becomes shorter while the daemon reads it."""


class SimulatedDisk(NamedTuple):
    """A disk that repeats what happens in a simulation; idle without one."""

    name: str
    scenario: Scenario | None = None
    serial: str = ""
    mount_point: str = ""
    model: str = ""
    flushes: bool = False
    """Each write is followed by an empty flush, as fdatasync causes it."""


class _Frame(NamedTuple):
    counters: tuple[int, ...]
    reads: int
    writes: int
    """In flight, as the reads."""
    stats: tuple[tuple[int, ...], ...]
    """The numbers of sysfs `stat` in the time before: those of the close samples."""


@cache
def _frames(scenario: Scenario | None, *, flushes: bool) -> list[_Frame]:
    if scenario is None:
        return [_Frame((0,) * 17, 0, 0, ())]
    frames = []
    for tick in run(scenario).ticks:
        counters = [int(field) for field in (tick.diskstats or "").split()[3:]]
        stats = [
            [
                *(each.reads, 0, each.read_sectors, 0, each.writes, 0, each.written_sectors, 0),
                *(each.inflight, *6 * (0,), each.flushes, each.flush_ms),
            ]
            for each in tick.close.get(DEVICE, ())
        ]
        for numbers in [counters, *stats] if flushes else ():
            writes = numbers[4]
            numbers[4], numbers[15], numbers[16] = 2 * writes, writes, writes // 10
        in_flight = tick.inflight.get(DEVICE, (0, 0))
        frames.append(_Frame(tuple(counters), *in_flight, tuple(map(tuple, stats))))
    return frames


def _later(numbers: Sequence[int], last: Sequence[int], rounds: int) -> str:
    """Return the numbers of a simulation that has been repeated; in-flight does not add up."""
    pairs = enumerate(zip(numbers, last, strict=True))
    return " ".join(str(n if field == 8 else n + rounds * end) for field, (n, end) in pairs)


class SimulatedMachine:
    """Directories for --path.procfs and --path.sysfs."""

    def __init__(self, directory: Path, disks: Sequence[SimulatedDisk]) -> None:
        self.procfs, self.sysfs = directory / "proc", directory / "sys"
        self._disks = disks
        self._frames = [_frames(disk.scenario, flushes=disk.flushes) for disk in disks]
        (self.procfs / "1").mkdir(parents=True)
        (self.sysfs / "class" / "block").mkdir(parents=True)
        (self.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
        mounts = []
        for minor, disk in enumerate(disks):
            number = f"254:{minor}"
            attributes = {"serial": disk.serial} if disk.serial else {}
            add_device(
                self.sysfs, f"block/{disk.name}", number, 100 * GIB, inflight="0 0", **attributes
            )
            if disk.model:
                about = self.sysfs / "devices" / "block" / disk.name / "device"
                about.mkdir()
                (about / "model").write_text(disk.model)
            if disk.mount_point:
                mounts.append(
                    f"{30 + minor} 1 {number} / {disk.mount_point} rw - ext4 /dev/{disk.name} rw\n"
                )
        (self.procfs / "1" / "mountinfo").write_text("".join(mounts))
        self._write(0)

    @property
    def options(self) -> tuple[str, ...]:
        return (f"--path.procfs={self.procfs}", f"--path.sysfs={self.sysfs}")

    def _write(self, number: int) -> None:
        lines = []
        for minor, (disk, frames) in enumerate(zip(self._disks, self._frames, strict=True)):
            rounds, index = divmod(number, len(frames))
            counters, reads, writes, _ = frames[index]
            line = f"254 {minor} {disk.name} {_later(counters, frames[-1].counters, rounds)}"
            lines.append(f"{line:>{_WIDTH}}\n")
            if disk.scenario is not None:
                device = self.sysfs / "class" / "block" / disk.name
                self._put(device / "inflight", f"{reads:8} {writes:8}\n")
        self._put(self.procfs / "diskstats", "".join(lines))

    def _write_stats(self, number: int, step: int) -> None:
        for disk, frames in zip(self._disks, self._frames, strict=True):
            rounds, index = divmod(number, len(frames))
            if step < len(stats := frames[index].stats):
                text = _later(stats[step], frames[-1].counters, rounds)
                self._put(
                    self.sysfs / "class" / "block" / disk.name / "stat", f"{text:>{_WIDTH}}\n"
                )

    @staticmethod
    def _put(path: Path, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.pwrite(descriptor, text.encode(), 0)
        os.close(descriptor)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write a close sample every 10 ms, and after ten of them a sample."""
        stop = threading.Event()

        def play() -> None:
            due_s = time.monotonic()
            for number, step in (divmod(each, _STEPS) for each in count()):
                self._write_stats(number, step)
                if step == _STEPS - 1:
                    self._write(number)
                due_s += _STEP_S
                if stop.wait(max(0.0, due_s - time.monotonic())):
                    return

        thread = threading.Thread(target=play)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
