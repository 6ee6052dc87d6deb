"""The wheel: reproducible, and complete."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("exporter", "packaging", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")


def build(tree: Path, umask: int) -> Path:
    """Build the wheel from a copy of this tree made under an umask, and return its path."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tree / part)
        else:
            shutil.copyfile(ROOT / part, tree / part)
    for path in tree.rglob("*"):
        path.chmod(path.stat().st_mode & ~umask)
    stale = tree / "build" / "lib" / "disksla"
    stale.mkdir(parents=True)
    (stale / "deleted.py").touch()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000", "BUILD_PYTHON": sys.executable}
    subprocess.run(
        [tree / "packaging" / "wheel", "dist"],
        check=True,
        capture_output=True,
        env=environment,
        umask=umask,
    )
    [wheel] = (tree / "dist").iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    trees = (tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two"))
    return build(trees[0], umask=0o022), build(trees[1], umask=0o077)


def test_wheel_is_reproducible(wheels: tuple[Path, Path]) -> None:
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_wheel_has_all_files_of_the_package(wheels: tuple[Path, Path]) -> None:
    source = ROOT / "exporter"
    expected = {
        str(path.relative_to(source))
        for pattern in ("*.py", "*.css", "*.csv", "*.html", "*.js", "*.yaml", "py.typed")
        for path in (source / "disksla").rglob(pattern)
    }
    with zipfile.ZipFile(wheels[0]) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == expected
