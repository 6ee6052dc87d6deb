import subprocess
from pathlib import Path

import pytest

from disksla.errors import DiskslaError
from disksla.fio.filesystem import file_system_of
from support.simulated_host import a_disk


def test_a_directory_lies_on_what_is_mounted_nearest_above(tmp_path: Path) -> None:
    command = ["findmnt", "--noheadings", "--output=TARGET,FSTYPE", "--target", str(tmp_path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    mount_point, file_system = shown.split()
    assert file_system_of(tmp_path, a_disk(mount_points=(mount_point,))) == file_system


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "nothing: No such file or directory"),
        ("file", "file is no directory"),
        (".", "does not lie on vda, .* expected a directory below: /elsewhere"),
    ],
)
def test_a_directory_of_another_disk_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskslaError, match=said):
        file_system_of(tmp_path / name, a_disk(mount_points=("/elsewhere",)))


def test_a_disk_may_not_be_mounted_at_all(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match="nothing of it is mounted"):
        file_system_of(tmp_path, a_disk())
