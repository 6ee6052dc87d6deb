"""Dependencies: pins agree, installed wheels are unmodified, and licences are permitted."""

import base64
import configparser
import hashlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "requirements.txt"
CHECK = ROOT / "requirements-dev.txt"
FUZZ = ROOT / "benches" / "fuzz" / "requirements.txt"
PACKAGED = sorted((ROOT / "packaging").glob("requirements*.txt"))
PIN = re.compile(r"^([\w.-]+)==([\w.!+-]+)", re.MULTILINE)

PERMISSIVE = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "CNRI-Python", "PSF-2.0"}
"""Licences that require attribution only."""
WEAK_COPYLEFT = {
    "pyudev": "LGPL-2.1-or-later",
    "hypothesis": "MPL-2.0",
    "pathspec": "MPL-2.0",
    "pytest-rerunfailures": "MPL-2.0",
    "shtab": "MPL-2.0",
}
"""Weak copyleft is permitted for libraries that are used unmodified and can be replaced."""
SPDX_NAMES = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""SPDX identifiers of the names in older metadata."""


def pins(*files: Path) -> dict[str, str]:
    """Return pinned versions by name."""
    found = [pair for file in files for pair in PIN.findall(file.read_text(encoding="utf-8"))]
    return {canonicalize_name(name): version for name, version in found}


def declared() -> list[Requirement]:
    """Return the requirements in setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options"]["install_requires"].strip().splitlines()
    return [Requirement(line) for line in lines]


def closure(requirements: list[Requirement]) -> Iterator[str]:
    """Yield the names of requirements and of their dependencies on this machine."""
    for requirement in requirements:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield canonicalize_name(requirement.name)
            dependencies = importlib.metadata.requires(requirement.name) or []
            yield from closure([Requirement(line) for line in dependencies])


def test_pins_are_within_the_declared_ranges() -> None:
    pinned = pins(RUN)
    for requirement in declared():
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}: pinned to {version}"


def test_exactly_the_dependencies_are_pinned() -> None:
    assert set(closure(declared())) | {"setuptools"} == pins(RUN).keys()


NO_PACKAGES = pytest.param(None, marks=pytest.mark.skip(reason="NOT TESTED: no packages"))
packaged_file = pytest.mark.parametrize("file", PACKAGED or [NO_PACKAGES])


@packaged_file
def test_packages_contain_the_tested_versions(file: Path) -> None:
    pinned, packaged = pins(RUN), pins(file)
    assert packaged == {name: pinned[name] for name in packaged}
    assert set(closure(declared())) <= packaged.keys()


@packaged_file
def test_packages_pin_wheels_by_hash(file: Path) -> None:
    _, *entries = PIN.split(file.read_text(encoding="utf-8"))
    for name, rest in zip(entries[::3], entries[2::3], strict=True):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", rest), f"{name} has no hash"


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "version"), sorted(pins(RUN, CHECK).items()))
def test_installed_files_match_their_record(name: str, version: str) -> None:
    """Compare the hashes in the RECORD of the wheel with the installed files."""
    distribution = importlib.metadata.distribution(name)
    assert distribution.version == version
    files = [file for file in distribution.files or () if file.hash is not None]
    assert files
    for file in files:
        assert file.hash is not None
        digest = hashlib.new(file.hash.mode, Path(file.locate()).read_bytes()).digest()
        recorded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert recorded == file.hash.value, f"{file} was modified after installation"


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(pins(RUN, CHECK)))
def test_licence_is_permitted(name: str) -> None:
    found = licences_of(name)
    assert found
    assert found <= PERMISSIVE or found == {WEAK_COPYLEFT.get(name)}, f"{name}: {', '.join(found)}"


def licences_of(distribution: str) -> set[str]:
    """Return the licences of a distribution as SPDX identifiers."""
    metadata = importlib.metadata.metadata(distribution)
    if "License-Expression" in metadata:
        return set(re.split(r" AND | OR ", metadata["License-Expression"]))
    classifiers = [
        classifier.rpartition(" :: ")[2]
        for classifier in metadata.get_all("Classifier") or ()
        if classifier.startswith("License :: ") and not classifier.endswith(" approved")
    ]
    names = classifiers or metadata.get_all("License") or []
    return {SPDX_NAMES.get(name, name) for name in names}


@pytest.mark.nightly
def test_installed_packages_are_compatible() -> None:
    check = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout
