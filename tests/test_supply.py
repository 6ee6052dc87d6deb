"""What we are made of: pins that agree, wheels as they were published, licences that we accept."""

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
FUZZ = ROOT / "tests" / "fuzz" / "requirements.txt"
PACKAGED = sorted((ROOT / "packaging").glob("requirements*.txt"))
PIN = re.compile(r"^([\w.-]+)==([\w.!+-]+)", re.MULTILINE)

FREE = {
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Apache-2.0",
    "PSF-2.0",
}
"""Licences that ask for no more than to be named."""
WEAK_COPYLEFT = {
    "pyudev": "LGPL-2.1-or-later",
    "hypothesis": "MPL-2.0",
    "pathspec": "MPL-2.0",
    "shtab": "MPL-2.0",
}
"""Used as they are, unchanged and replaceable, which is all that these ask for."""
IN_OTHER_WORDS = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""What was written before there were identifiers (SPDX)."""


def pins(*files: Path) -> dict[str, str]:
    """Give versions by name."""
    found = [pair for file in files for pair in PIN.findall(file.read_text(encoding="utf-8"))]
    return {canonicalize_name(name): version for name, version in found}


def declared() -> list[Requirement]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options"]["install_requires"].strip().splitlines()
    return [Requirement(line) for line in lines]


def needed(requirements: list[Requirement]) -> Iterator[str]:
    """Give the names of these and of all that they need on this machine."""
    for requirement in requirements:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield canonicalize_name(requirement.name)
            below = importlib.metadata.requires(requirement.name) or []
            yield from needed([Requirement(line) for line in below])


def test_what_is_pinned_lies_within_the_ranges() -> None:
    pinned = pins(RUN)
    for requirement in declared():
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}"


def test_what_we_need_is_pinned_and_nothing_else() -> None:
    assert set(needed(declared())) | {"setuptools"} == pins(RUN).keys()


def test_nothing_is_pinned_twice() -> None:
    names = [name for file in (RUN, CHECK, FUZZ) for name in pins(file)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("file", [RUN, CHECK, FUZZ], ids=lambda file: file.name)
def test_every_line_is_a_pin(file: Path) -> None:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert len(pins(file)) == len(lines)


NO_PACKAGES = pytest.param(None, marks=pytest.mark.skip(reason="NOT TESTED: no packages"))
packaged_file = pytest.mark.parametrize("file", PACKAGED or [NO_PACKAGES])


@packaged_file
def test_packages_carry_the_versions_that_were_tested(file: Path) -> None:
    pinned, packaged = pins(RUN), pins(file)
    assert packaged == {name: pinned[name] for name in packaged}
    assert set(needed(declared())) <= packaged.keys()


@packaged_file
def test_packages_know_what_they_carry_by_its_hash(file: Path) -> None:
    _, *entries = PIN.split(file.read_text(encoding="utf-8"))
    for name, rest in zip(entries[::3], entries[2::3], strict=True):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", rest), f"{name} has no hash"


@pytest.mark.parametrize(("name", "version"), sorted(pins(RUN, CHECK).items()))
def test_what_is_installed_is_what_was_published(name: str, version: str) -> None:
    """Its own record is held against its files, as the wheel brought both."""
    distribution = importlib.metadata.distribution(name)
    assert distribution.version == version
    files = [file for file in distribution.files or () if file.hash is not None]
    assert files
    for file in files:
        assert file.hash is not None
        digest = hashlib.new(file.hash.mode, Path(file.locate()).read_bytes()).digest()
        recorded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert recorded == file.hash.value, f"{file} was changed after it was installed"


@pytest.mark.parametrize("name", sorted(pins(RUN, CHECK)))
def test_each_licence_is_one_that_we_accept(name: str) -> None:
    told = licences_of(name)
    assert told
    assert told <= FREE or told == {WEAK_COPYLEFT.get(name)}, f"{name}: {', '.join(told)}"


def licences_of(name: str) -> set[str]:
    """Give the licences that a distribution names, by their identifiers."""
    metadata = importlib.metadata.metadata(name)
    if "License-Expression" in metadata:
        return set(re.split(r" AND | OR ", metadata["License-Expression"]))
    classifiers = [
        words.rpartition(" :: ")[2]
        for words in metadata.get_all("Classifier") or ()
        if words.startswith("License :: ")
    ]
    told = classifiers or metadata.get_all("License") or []
    return {IN_OTHER_WORDS.get(words, words) for words in told}


def test_what_is_installed_fits_together() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
