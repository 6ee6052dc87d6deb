"""The version of a build, which packaging/common reads from git."""

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pip._vendor.packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
NAMED = {"GIT_AUTHOR_NAME": "Test", "GIT_COMMITTER_NAME": "Test"}
NAMED |= {"GIT_AUTHOR_EMAIL": "test@localhost", "GIT_COMMITTER_EMAIL": "test@localhost"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a directory with what the version is read from, and the release 1.2.0."""
    for name in ("packaging/common", "exporter/disksla/__init__.py", "setup.cfg"):
        copy = tmp_path / "tree" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
    (tmp_path / "tree" / "exporter/disksla/__init__.py").write_text('VERSION = "1.2.0"\n')
    return tmp_path / "tree"


@pytest.fixture
def repository(tree: Path) -> Path:
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "first")
    return tree


def git(tree: Path, *words: str) -> str:
    run = subprocess.run(
        ["git", "-C", str(tree), *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **NAMED},
    )
    return run.stdout.strip()


def version_of(tree: Path, **variables: str) -> tuple[str, str]:
    """Return the version and the commit that a build has."""
    version, revision = read(tree, **variables).stdout.split()
    return version, revision


def read(tree: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euc", ". packaging/common; echo $version $revision"],
        cwd=tree,
        env={"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": "1790000000", **variables},
        check=False,
        capture_output=True,
        text=True,
    )


def test_outside_of_git_the_commit_is_unknown(tree: Path) -> None:
    done = read(tree)
    assert done.stdout == "1.2.0 unknown\n"
    assert "no git repository: the version is 1.2.0, of an unknown commit" in done.stderr


def test_inside_of_another_repository_the_commit_is_unknown(repository: Path) -> None:
    inner = repository / "inner"
    for name in ("packaging", "exporter"):
        shutil.copytree(repository / name, inner / name)
    shutil.copyfile(repository / "setup.cfg", inner / "setup.cfg")
    assert version_of(inner) == ("1.2.0", "unknown")


def test_each_commit_has_a_higher_version(repository: Path) -> None:
    found = [version_of(repository)]
    for _ in range(10):
        git(repository, "commit", "--quiet", "--allow-empty", "--message", "next")
        found.append(version_of(repository))
    assert found[-1] == ("1.2.0.post11", git(repository, "rev-parse", "--short=12", "HEAD"))
    in_order = ["1.2.0", *(version for version, _ in found), "1.2.1"]
    assert in_order == sorted(in_order, key=Version)
    if shutil.which("dpkg"):
        for low, high in itertools.pairwise(in_order):
            subprocess.run(
                ["dpkg", "--compare-versions", f"{low}-1", "lt", f"{high}-1"], check=True
            )


def test_release_has_the_version_alone(repository: Path) -> None:
    git(repository, "tag", "--annotate", "v1.2.0", "--message", "1.2.0")
    revision = git(repository, "rev-parse", "--short=12", "HEAD")
    assert version_of(repository) == ("1.2.0", revision)
    (repository / "setup.cfg").write_text("[metadata]\n")
    assert version_of(repository) == ("1.2.0.post1", f"{revision}-dirty")


def test_shallow_clone_is_refused(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "second")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow")
    done = read(tmp_path / "shallow")
    assert done.returncode == 1
    assert "the clone is shallow; run git fetch --unshallow" in done.stderr


def test_version_of_the_caller(repository: Path) -> None:
    """As in the image, which has no repository."""
    assert version_of(repository, BUILD_VERSION="3.0", BUILD_REVISION="abc") == ("3.0", "abc")
    assert version_of(repository, BUILD_VERSION="3.0") == ("3.0", "unknown")
