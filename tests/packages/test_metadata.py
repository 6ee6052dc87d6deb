"""What the papers of the packages say, held against the rest of the house."""

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
UNIT = ROOT / "systemd" / "disksla-exporter.service"
CONTROL = PACKAGING / "debian" / "control"
SPEC = PACKAGING / "redhat" / "disksla-exporter.spec"
BUILDERS_OWN = {"setuptools"}
"""Pinned to build with, not to travel."""


def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def pins(file: Path) -> dict[str, str]:
    """Give the versions of a file of requirements, by name."""
    text = file.read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE))


def test_what_travels_is_what_was_tested() -> None:
    tested = pins(ROOT / "requirements.txt")
    assert tested.keys() >= BUILDERS_OWN
    travels = {name: version for name, version in tested.items() if name not in BUILDERS_OWN}
    assert pins(PACKAGING / "requirements.txt") == travels, "out of date: make lock"


def test_what_travels_is_held_to_its_bytes() -> None:
    lock = (PACKAGING / "requirements.txt").read_text(encoding="utf-8")
    comment, *entries = re.split(r"^(?=\w)", lock, flags=re.MULTILINE)
    assert comment.startswith("#")
    assert entries
    for entry in entries:
        assert re.fullmatch(r"\S+==\S+(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n", entry), entry


def test_all_that_we_declare_travels() -> None:
    declared = re.findall(r"^[\w-]+", setup()["options"]["install_requires"], flags=re.MULTILINE)
    assert declared
    assert set(declared) <= pins(PACKAGING / "requirements.txt").keys()


def test_the_licence_of_each_that_travels_is_told() -> None:
    paper = (PACKAGING / "debian" / "copyright").read_text(encoding="utf-8")
    told = set(re.findall(r"usr/lib/disksla/(\w+)\*", paper))
    stems = {re.sub(r"[-.]", "_", name.lower()) for name in pins(PACKAGING / "requirements.txt")}
    assert {stem for stem in stems if not any(stem.startswith(name) for name in told)} == set()


def test_the_packages_ask_for_a_python_that_we_accept() -> None:
    least = setup()["options"]["python_requires"]
    assert least == ">= 3.11"
    assert f"python3 ({least})" in CONTROL.read_text(encoding="utf-8")
    assert "python3 (<< 3.12)" in CONTROL.read_text(encoding="utf-8")
    assert "Requires: /usr/bin/python3.11\n" in SPEC.read_text(encoding="utf-8")


def test_both_packages_describe_the_same_thing() -> None:
    spec = SPEC.read_text(encoding="utf-8").partition("%description\n")[2].partition("\n%")[0]
    control = CONTROL.read_text(encoding="utf-8").partition("Description: ")[2]
    summary, *lines = control.rstrip().splitlines()
    assert [line.removeprefix(" ").replace(".", "", line == " .") for line in lines] == (
        spec.rstrip().splitlines()
    )
    assert f"Summary: {summary}\n" in SPEC.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["/usr/bin/disksla", "/etc/disksla/disksla.yml"])
def test_the_unit_finds_what_the_packages_install(path: str) -> None:
    assert re.search(rf"^ExecStart=.*{re.escape(path)}\b", UNIT.read_text(), flags=re.MULTILINE)
    assert (PACKAGING / "files" / Path(path).name).exists()


def test_the_packages_name_every_file_of_the_unit() -> None:
    files = {path.name for path in (ROOT / "systemd").iterdir()}
    known = {
        "disksla-exporter.service",
        "disksla-exporter.service.d",
        "disksla-exporter.socket",
        "disksla-exporter.default",
        "disksla-exporter.sysusers",
    }
    assert files == known, "packaging/tree, debian/install and the spec must know it too"
