"""What another user may read and write."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import has_user, may_access, user_name

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: needs root")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return a file that all may read, and one that only its owner may."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o755)
    paths = {name: tmp_path / f"{name} '$(x)" for name in ("public", "private")}
    for name, path in paths.items():
        path.touch()
        path.chmod(0o644 if name == "public" else 0o600)
    return paths


def test_this_user(files: dict[str, Path], tmp_path: Path) -> None:
    paths = [*files.values(), tmp_path / "missing"]
    assert list(may_access(user_name(), paths, "r").values()) == [True, True, False]
    assert list(may_access(user_name(), paths, "w").values()) == [True, True, False]


def test_users() -> None:
    assert has_user(user_name())
    assert has_user("root")
    assert not has_user("no-such-user")


@needs_root
def test_another_user(files: dict[str, Path], tmp_path: Path) -> None:
    paths = [*files.values(), tmp_path / "missing"]
    assert list(may_access("games", paths, "r").values()) == [True, False, False]
    assert list(may_access("games", paths, "w").values()) == [False, False, False]
    assert may_access("games", [], "r") == {}


@needs_root
@pytest.mark.skipif(shutil.which("setfacl") is None, reason="NOT TESTED: needs setfacl (acl)")
def test_access_by_an_acl(files: dict[str, Path]) -> None:
    private = files["private"]
    subprocess.run(["setfacl", "--modify", "u:games:r", str(private)], check=True)
    assert may_access("games", [private], "r") == {private: True}


@pytest.mark.skipif(os.geteuid() == 0, reason="NOT TESTED: needs another user than root")
def test_another_user_needs_root(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match="only root can check what the user root may"):
        may_access("root", [tmp_path], "r")
