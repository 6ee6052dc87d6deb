"""Files of procfs and sysfs that are kept open."""

import shutil
import time
from pathlib import Path

import pytest

from disksla.kernel.procfs.files import DiskstatsFile, InflightFiles, StatFiles


def alone(*devices: str) -> dict[str, tuple[str, ...]]:
    return {device: (device,) for device in devices}


def test_diskstats_file_reads_long_text_whole(tmp_path: Path) -> None:
    text = "".join(f" 7 {number} loop{number} 0 0 0 0\n" for number in range(5000))
    (tmp_path / "diskstats").write_text(text)
    file = DiskstatsFile(tmp_path)
    assert file.read() == text
    (tmp_path / "diskstats").write_text("short\n")
    assert file.read() == "short\n"
    file.close()


def test_diskstats_file_reads_all_lines_of_the_kernel() -> None:
    text = Path("/proc/diskstats").read_text(encoding="ascii")
    file = DiskstatsFile(Path("/proc"))
    assert len(file.read().splitlines()) == len(text.splitlines())
    file.close()


def test_diskstats_file_retries_after_errors(tmp_path: Path) -> None:
    file = DiskstatsFile(tmp_path)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            file.read()
    (tmp_path / "diskstats").mkdir()
    with pytest.raises(IsADirectoryError):
        file.read()
    (tmp_path / "diskstats").rmdir()
    (tmp_path / "diskstats").write_text("now\n")
    assert file.read() == "now\n"
    file.close()
    file.close()


def test_diskstats_file_reads_invalid_utf8(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_bytes(b"\xff\xfe\n")
    file = DiskstatsFile(tmp_path)
    assert file.read().endswith("\n")
    file.close()


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    for device, text in (
        ("vda", "       3        5\n"),
        ("vdb", "0 0\n"),
        ("odd", "three\n"),
        ("cciss!c0d0", "1 1\n"),
    ):
        directory = tmp_path / "class" / "block" / device
        directory.mkdir(parents=True)
        (directory / "inflight").write_text(text)
    (tmp_path / "class" / "block" / "folder" / "inflight").mkdir(parents=True)
    return tmp_path


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_inflight_files_are_open_for_active_devices_only(sysfs: Path) -> None:
    before = open_files()
    files = InflightFiles(sysfs)
    assert files.read({"vda", "vdb", "cciss/c0d0"}) == (
        {"vda": (3, 5), "vdb": (0, 0), "cciss/c0d0": (1, 1)},
        {},
    )
    assert open_files() == before + 3
    assert files.read({"vda"}) == ({"vda": (3, 5)}, {})
    assert open_files() == before + 1
    files.close()
    assert open_files() == before


def test_inflight_of_a_removed_device_is_not_an_error(sysfs: Path) -> None:
    files = InflightFiles(sysfs)
    assert files.read({"vdz"}) == ({}, {})


def test_inflight_reports_what_it_cannot_parse(sysfs: Path) -> None:
    files = InflightFiles(sysfs)
    counts, problems = files.read({"odd", "folder", "vda"})
    assert counts == {"vda": (3, 5)}
    assert set(problems) == {"inflight:odd", "inflight:folder"}
    assert problems["inflight:odd"] == r"found 'three\n'; expected two numbers"
    assert "directory" in problems["inflight:folder"]
    files.close()


STAT = "101 2 808 9 {writes} 7 1600 20 3 15 29 0 0 0 0 7 4\n"


@pytest.fixture
def stat_sysfs(sysfs: Path) -> Path:
    for device in ("vda", "vdb", "cciss!c0d0"):
        (sysfs / "class" / "block" / device / "stat").write_text(STAT.format(writes=50))
    (sysfs / "class" / "block" / "odd" / "stat").write_text("three\n")
    (sysfs / "class" / "block" / "folder" / "stat").mkdir()
    return sysfs


def test_disks_that_are_looked_at_have_a_sample_of_each_reading(stat_sysfs: Path) -> None:
    before, begin_s = open_files(), time.monotonic()
    files = StatFiles(stat_sysfs)
    files.read()
    assert files.take() == ({}, {})
    files.look_at(alone("vda", "cciss/c0d0"), ())
    assert open_files() == before + 2
    (stat_sysfs / "class" / "block" / "vda" / "stat").write_text(STAT.format(writes=60))
    files.read()
    samples, problems = files.take()
    assert problems == {}
    assert [sample.writes for sample in samples["vda"]] == [50, 60]
    assert [sample.writes for sample in samples["cciss/c0d0"]] == [50, 50]
    times_s = [sample.at_s for sample in samples["vda"]]
    assert begin_s - 0.001 <= times_s[0] <= times_s[1] <= time.monotonic() + 0.001
    assert files.take() == ({}, {})
    files.look_at(alone("vda"), ())
    assert open_files() == before + 1
    files.close()
    assert open_files() == before


def test_requests_in_flight_of_a_disk_with_partitions_are_those_of_inflight(
    stat_sysfs: Path,
) -> None:
    before = open_files()
    files = StatFiles(stat_sysfs)
    files.look_at(alone("vda", "vdb"), {"vda"})
    files.read()
    samples, _ = files.take()
    assert {device: each[0].inflight for device, each in samples.items()} == {"vda": 8, "vdb": 3}
    files.close()
    assert open_files() == before


def test_close_samples_of_a_removed_device_are_not_an_error(stat_sysfs: Path) -> None:
    """Neither of one that was never there, nor of one that is removed while it is looked at."""
    before = open_files()
    files = StatFiles(stat_sysfs)
    files.look_at(alone("vda", "vdz"), ())
    files.read()
    shutil.rmtree(stat_sysfs / "class" / "block" / "vda")
    samples, problems = files.take()
    assert (list(samples), problems) == (["vda"], {})
    files.look_at(alone(), ())
    files.look_at(alone("vda"), {"vda"})
    files.read()
    assert files.take() == ({}, {})
    assert open_files() == before


def test_close_samples_that_cannot_be_read_are_a_problem(stat_sysfs: Path) -> None:
    """Those of other disks are there, and each failed attempt is an error."""
    before = open_files()
    files = StatFiles(stat_sysfs)
    for _ in range(2):
        files.look_at(alone("odd", "folder", "vda"), ())
        files.read()
        samples, problems = files.take()
        assert list(samples) == ["vda"]
        assert set(problems) == {"close_samples:odd", "close_samples:folder"}
        assert problems["close_samples:odd"].startswith("found 'three")
        assert "directory" in problems["close_samples:folder"]
    files.close()
    assert open_files() == before


def test_without_inflight_a_disk_with_partitions_is_not_looked_at(stat_sysfs: Path) -> None:
    before = open_files()
    (stat_sysfs / "class" / "block" / "vda" / "inflight").unlink()
    files = StatFiles(stat_sysfs)
    files.look_at(alone("vda"), {"vda"})
    files.read()
    samples, problems = files.take()
    assert samples == {}
    assert "inflight" in problems["close_samples:vda"]
    assert open_files() == before


def test_paths_of_a_disk_have_one_sample_together(stat_sysfs: Path) -> None:
    files = StatFiles(stat_sysfs)
    files.look_at({"vda": ("vda", "vdb")}, {"vda"})
    files.look_at({"vda": ("vdb",)}, ())
    samples, problems = files.take()
    assert problems == {}
    assert [sample.writes for sample in samples["vda"]] == [100, 50]
    files.close()
