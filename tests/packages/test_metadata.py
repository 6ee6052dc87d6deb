"""Metadata of the packages, compared with setup.cfg, requirements.txt and the unit."""

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
UNIT = ROOT / "systemd" / "disksla-exporter.service"
CONTROL = PACKAGING / "debian" / "control"
SPEC = PACKAGING / "redhat" / "disksla-exporter.spec"
BUILD_ONLY = {"setuptools"}
"""Pinned for the build, not part of the packages."""


def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def pins(file: Path) -> dict[str, str]:
    """Return the pinned versions of a requirements file, by name."""
    text = file.read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE))


def test_bundled_versions_are_the_tested_ones() -> None:
    tested = pins(ROOT / "requirements.txt")
    assert tested.keys() >= BUILD_ONLY
    bundled = {name: version for name, version in tested.items() if name not in BUILD_ONLY}
    assert pins(PACKAGING / "requirements.txt") == bundled, "out of date: make lock"


def test_bundled_wheels_are_pinned_by_hash() -> None:
    lock = (PACKAGING / "requirements.txt").read_text(encoding="utf-8")
    comment, *entries = re.split(r"^(?=\w)", lock, flags=re.MULTILINE)
    assert comment.startswith("#")
    assert entries
    for entry in entries:
        assert re.fullmatch(r"\S+==\S+(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n", entry), entry


def test_builders_of_the_image_are_pinned_by_hash() -> None:
    builders = pins(PACKAGING / "builders.txt")
    tested = pins(ROOT / "requirements.txt") | pins(ROOT / "requirements-dev.txt")
    assert builders == {name: tested[name] for name in ("setuptools", "shtab")}
    recipe = (PACKAGING / "oci" / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"pip install (.*)", recipe) == [
        "--require-hashes --no-deps --requirement builders.txt"
    ]


def test_declared_requirements_are_bundled() -> None:
    declared = re.findall(r"^[\w-]+", setup()["options"]["install_requires"], flags=re.MULTILINE)
    assert declared
    assert set(declared) <= pins(PACKAGING / "requirements.txt").keys()


def test_licence_of_each_bundled_library_is_listed() -> None:
    copyright_file = (PACKAGING / "debian" / "copyright").read_text(encoding="utf-8")
    listed = set(re.findall(r"usr/lib/disksla/(\w+)\*", copyright_file))
    stems = {re.sub(r"[-.]", "_", name.lower()) for name in pins(PACKAGING / "requirements.txt")}
    assert {stem for stem in stems if not stem.startswith(tuple(listed))} == set()


def test_all_files_name_the_supported_pythons() -> None:
    pythons = re.findall(r":: (3\.\d+)$", setup()["metadata"]["classifiers"], re.MULTILINE)
    assert setup()["options"]["python_requires"] == f">= {pythons[0]}"
    places = {
        PACKAGING / "common": f"pythons=${{PYTHONS:-{' '.join(pythons)}}}",
        PACKAGING / "debian" / "triggers": "\n".join(
            f"interest-noawait /usr/bin/python{version}" for version in pythons
        ),
        PACKAGING / "files" / "byte-code": " ".join(
            f"/usr/bin/python{version}" for version in pythons
        ),
        PACKAGING / "files" / "disksla": ", ".join(f'"{version}"' for version in pythons[::-1]),
        CONTROL: f"Depends: libudev1, procps, python3, {alternatives('python', pythons, ' | ')},",
        SPEC: f"Requires: ({alternatives('/usr/bin/python', pythons, ' or ')})\n",
    }
    for path, expected in places.items():
        assert expected in path.read_text(encoding="utf-8"), path


def alternatives(stem: str, versions: list[str], separator: str) -> str:
    """Return the alternatives of a dependency: apt installs the first one that exists."""
    return separator.join(f"{stem}{version}" for version in versions[::-1])


def test_both_packages_have_the_same_description() -> None:
    spec = SPEC.read_text(encoding="utf-8").partition("%description\n")[2].partition("\n%")[0]
    control = CONTROL.read_text(encoding="utf-8").partition("Description: ")[2]
    summary, *lines = control.rstrip().splitlines()
    assert [line.removeprefix(" ").replace(".", "", line == " .") for line in lines] == (
        spec.rstrip().splitlines()
    )
    assert f"Summary: {summary}\n" in SPEC.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["/usr/bin/disksla", "/etc/disksla/disksla.yml"])
def test_unit_uses_the_installed_paths(path: str) -> None:
    assert re.search(rf"^ExecStart=.*{re.escape(path)}\b", UNIT.read_text(), flags=re.MULTILINE)
    assert (PACKAGING / "files" / Path(path).name).exists()


def test_packages_install_every_systemd_file() -> None:
    files = {path.name for path in (ROOT / "systemd").iterdir()}
    expected = {
        "disksla-exporter.service",
        "disksla-exporter.service.d",
        "disksla-exporter.socket",
        "disksla-exporter.default",
        "disksla-exporter.sysusers",
        "disksla-detect.service",
        "disksla-detect.service.d",
        "disksla-detect.timer",
        "disksla-detect.default",
        "disksla-ebs.service",
        "disksla-events.socket",
        "disksla-events@.service",
        "disksla-events@.service.d",
        "90-disksla-detect.rules",
    }
    assert files == expected, "update packaging/tree, debian/install and the spec too"
