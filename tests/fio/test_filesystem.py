"""Which file system a directory is on."""

import subprocess
from pathlib import Path

import pytest

from disksla.errors import DiskslaError
from disksla.fio.scratch_file import file_system_of
from support.simulated_host import a_disk


def test_file_system_is_that_of_the_nearest_mount_point(tmp_path: Path) -> None:
    command = ["findmnt", "--noheadings", "--output=TARGET,FSTYPE", "--target", str(tmp_path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    mount_point, file_system = shown.split()
    assert file_system_of(tmp_path, a_disk(mount_points=(mount_point,))) == file_system


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "nothing: No such file or directory"),
        ("file", "file is not a directory"),
        (".", "is not on vda: .* expected a directory below /elsewhere"),
    ],
)
def test_path_outside_the_disk_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskslaError, match=message):
        file_system_of(tmp_path / name, a_disk(mount_points=("/elsewhere",)))


def test_disk_without_mounts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match="no file system of vda is mounted"):
        file_system_of(tmp_path, a_disk())
