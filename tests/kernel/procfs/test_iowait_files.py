"""Reading of /proc/stat and /proc/pressure/io."""

import os
from pathlib import Path

import pytest

from disksla.kernel.procfs.files import HostWaitFiles
from disksla.kernel.procfs.iowait import HostWait

CPU = "cpu  100 0 50 1000 250 0 0 0 0 0\ncpu0 100 0 50 1000 250 0 0 0 0 0\n"
PRESSURE = "some avg10=0 avg60=0 avg300=0 total=2500000\nfull avg10=0 avg60=0 avg300=0 total=7\n"


def procfs(tmp_path: Path, cpu: str | None = CPU, pressure: str | None = PRESSURE) -> Path:
    (tmp_path / "pressure").mkdir()
    if cpu is not None:
        (tmp_path / "stat").write_text(cpu)
    if pressure is not None:
        (tmp_path / "pressure" / "io").write_text(pressure)
    return tmp_path


def test_iowait_and_pressure_are_in_seconds(tmp_path: Path) -> None:
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    host, problems = HostWaitFiles(procfs(tmp_path)).read()
    assert host == HostWait(250 / ticks_per_second, 2.5, 7e-6)
    assert problems == {}


def test_kernel_without_pressure_is_not_an_error(tmp_path: Path) -> None:
    host, problems = HostWaitFiles(procfs(tmp_path, pressure=None)).read()
    assert (host.pressure_some_s, problems) == (None, {})
    assert host.iowait_s is not None


def test_content_not_understood_is_an_error(tmp_path: Path) -> None:
    host, problems = HostWaitFiles(procfs(tmp_path, "cpu one\n", "some\n")).read()
    assert host == HostWait()
    assert set(problems) == {"iowait", "pressure"}


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    root = procfs(tmp_path, cpu=None, pressure=None)
    (root / "pressure" / "io").mkdir()
    host, problems = HostWaitFiles(root).read()
    assert host == HostWait()
    assert set(problems) == {"iowait", "pressure"}


def test_real_procfs_is_read() -> None:
    host, problems = HostWaitFiles(Path("/proc")).read()
    assert host.iowait_s is not None
    assert problems == {}


@pytest.mark.parametrize(
    "cpu", ["", "cpu\n", "cpu  1 2 3\n", "cpu  1 2 3 4 nan 6 7 8 9 10\n", "x\n"]
)
def test_invalid_iowait_is_an_error(tmp_path: Path, cpu: str) -> None:
    host, problems = HostWaitFiles(procfs(tmp_path, cpu)).read()
    assert host == HostWait(None, 2.5, 7e-6)
    assert problems.keys() == {"iowait"}
