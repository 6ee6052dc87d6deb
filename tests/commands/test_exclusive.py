"""Utilization of a disk, and signals that stop a long command."""

import os
import signal
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.commands._context import stop_on_signal
from disksla.commands._exclusive import measure_utilization
from disksla.kernel.disks.disk import Disk
from support.simulated_host import a_disk


def line(name: str, busy_ms: int) -> str:
    return f" 254 0 {name} 1 0 8 1 0 0 0 0 0 {busy_ms} 9 0 0 0 0 0 0\n"


DISK = a_disk("vda")


def utilization(procfs: Path, before: str, after: str, *paths: Disk) -> float:
    (procfs / "diskstats").write_text(before)
    roots = Roots(procfs=procfs, sysfs=procfs, udev_data=procfs)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        (procfs / "diskstats").write_text(after)

    found = measure_utilization(roots, DISK, (DISK, *paths), 2.0, wait)
    assert waits == [2.0]
    return found


def test_utilization_is_a_share_of_the_observation(tmp_path: Path) -> None:
    assert utilization(tmp_path, line("vda", 1000), line("vda", 1500)) == 0.25
    assert utilization(tmp_path, line("vda", 1000), line("vda", 1000)) == 0
    assert utilization(tmp_path, line("vda", 1000), line("vda", 0)) == 0


def test_use_by_another_path_counts(tmp_path: Path) -> None:
    path = a_disk("sdb", minor=16, path_of="vda")
    before, after = (line("vda", 0) + line("sdb", busy_ms) for busy_ms in (100, 600))
    assert utilization(tmp_path, before, after, path) == 0.25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "vda is not in /proc/diskstats"),
        (line("vdb", 1), "vda is not in /proc/diskstats"),
        (" 254 0 vda 1 2 3 4\n", "/proc/diskstats does not report the utilization of vda"),
        (" 254 0 vda 1 2 3 x\n", "cannot read the counters of vda: "),
    ],
)
def test_missing_or_invalid_counters_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        utilization(tmp_path, text, text)


def test_missing_diskstats_is_refused(tmp_path: Path) -> None:
    paths = Roots(procfs=tmp_path, sysfs=tmp_path, udev_data=tmp_path)
    with pytest.raises(DiskslaError, match=r"cannot read the counters of vda: .*No such file"):
        measure_utilization(paths, DISK, (), 0.0, lambda _: None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_is_recorded_and_its_handler_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as interrupted:
        assert not interrupted.stop.is_set()
        os.kill(os.getpid(), number)
        assert interrupted.stop.is_set()
        assert interrupted.by == number
    assert signal.getsignal(number) == before
