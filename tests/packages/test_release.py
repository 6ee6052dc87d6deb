"""packaging/release, in a clone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- A command.

## [0.0.9] - 2026-01-01

- Old.
"""
AUTHOR = ["-c", "user.name=Release test", "-c", "user.email=release@localhost"]


def git(clone: Path, *words: str) -> str:
    command = ["git", "-C", str(clone), *AUTHOR, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("NOT TESTED: a release needs git")
    path = tmp_path / "clone"
    subprocess.run(["git", "init", "--quiet", str(path)], check=True)
    for name in (
        "packaging/release",
        "packaging/kubernetes/daemonset.yaml",
        "packaging/kubernetes/podmonitor.yaml",
        "packaging/helm/disksla/Chart.yaml",
        "exporter/disksla/__init__.py",
        "setup.cfg",
    ):
        copy = path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
        copy.chmod((ROOT / name).stat().st_mode)
    (path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--message", "first")
    git(path, "config", "user.name", "Release test")
    git(path, "config", "user.email", "release@localhost")
    return path


def release(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(clone / "packaging" / "release"), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_release_writes_version_and_changelog_and_tags(clone: Path) -> None:
    assert release(clone, "12.3.4").returncode == 0
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "describe", "--exact-match").strip() == "v12.3.4"
    package = (clone / "exporter" / "disksla" / "__init__.py").read_text(encoding="utf-8")
    assert 'VERSION = "12.3.4"\n' in package
    manifest = (clone / "packaging" / "kubernetes" / "daemonset.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"image: .*:(\S+)", manifest)) == {"12.3.4"}
    assert set(re.findall(r"kubernetes.io/version: (.+)", manifest)) == {'"12.3.4"'}
    chart = (clone / "packaging" / "helm" / "disksla" / "Chart.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^\w*[vV]ersion: (\d.*)$", chart, re.MULTILINE) == ["12.3.4", "12.3.4"]
    changelog = (clone / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"## \[Unreleased\]\n\n## \[12\.3\.4\] - \d{4}-\d\d-\d\d\n", changelog)
    message = git(clone, "tag", "--list", "--format=%(contents)", "v12.3.4")
    assert "- A command." in message
    assert "Old" not in message


@pytest.mark.parametrize("words", [(), ("",), ("1.2",), ("v1.2.3",), ("1.2.3-rc1",)])
def test_release_rejects_what_is_not_a_version(clone: Path, words: tuple[str, ...]) -> None:
    refused = release(clone, *words)
    assert refused.returncode == 1
    assert "expected MAJOR.MINOR.PATCH" in refused.stderr


def test_release_rejects_a_version_that_is_not_higher(clone: Path) -> None:
    assert release(clone, "1.10.0").returncode == 0
    for version in ("1.10.0", "1.9.9"):
        assert "expected one higher than 1.10.0" in release(clone, version).stderr


def test_release_rejects_a_changed_tree(clone: Path) -> None:
    (clone / "setup.cfg").write_text("[metadata]\n", encoding="utf-8")
    assert "the working tree has changes" in release(clone, "1.2.3").stderr


def test_release_rejects_an_empty_changelog(clone: Path) -> None:
    assert release(clone, "1.2.3").returncode == 0
    refused = release(clone, "1.2.4")
    assert refused.returncode == 1
    assert "Unreleased of CHANGELOG.md is empty" in refused.stderr


def test_release_rejects_an_existing_tag(clone: Path) -> None:
    git(clone, "tag", "v1.2.3")
    assert "tag v1.2.3 already exists" in release(clone, "1.2.3").stderr
