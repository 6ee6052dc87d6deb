"""Files of procfs and sysfs that are kept open."""

from pathlib import Path

import pytest

from disksla.procfs.files import DiskstatsFile, InflightFiles


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
