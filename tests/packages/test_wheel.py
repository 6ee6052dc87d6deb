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


def build(tree: Path, umask: int, **variables: str) -> Path:
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
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": "1790000000",
        "BUILD_PYTHON": sys.executable,
        **variables,
    }
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
        for pattern in ("*.py", "*.css", "*.csv", "*.html", "*.js", "*.json", "*.yaml", "py.typed")
        for path in (source / "disksla").rglob(pattern)
    }
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        shared = {name.partition(".data/data/")[2] for name in names if ".data/" in name}
    assert {name for name in names if ".data/" not in name} == expected
    assert shared == {
        "share/man/man1/disksla.1",
        "share/bash-completion/completions/disksla",
        "share/zsh/site-functions/_disksla",
        "share/fish/vendor_completions.d/disksla.fish",
    }


@pytest.mark.nightly
def test_wheel_names_the_version_and_the_commit(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    """Without git, as here, the caller gives them or they are unknown."""
    with zipfile.ZipFile(wheels[0]) as wheel:
        assert b'REVISION = "unknown"\n' in wheel.read("disksla/__init__.py")
    given = {"BUILD_VERSION": "3.4.5.post6", "BUILD_REVISION": "0123456789ab-dirty"}
    wheel_path = build(tmp_path, umask=0o022, **given)
    assert wheel_path.name == "disksla_exporter-3.4.5.post6-py3-none-any.whl"
    sources = (tmp_path / "exporter" / "disksla" / "__init__.py").read_text(encoding="utf-8")
    assert "3.4.5" not in sources, "the build changes no source"
    command = [sys.executable, "-c", "import disksla; print(disksla.VERSION, disksla.REVISION)"]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(wheel_path)}
    )
    assert run.stdout.split() == list(given.values())
