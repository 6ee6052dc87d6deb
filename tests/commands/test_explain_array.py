"""`disksla explain` of arrays on several disks, on a machine recorded with md, LVM, dm-crypt."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from disksla.commands.cli import main
from support import ttar

HOST = Path(__file__).parents[1] / "hosts" / "stacked-6.1"
SLOW = "rl"
"""Letters of the disks with 3000 IOPS; the others have 6000."""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the options for the machine, whose disks do nothing."""
    directory = tmp_path_factory.mktemp("host")
    for archive in HOST.glob("*.ttar"):
        ttar.unpack(archive, directory)
    numbers = {
        link.name: (link / "dev").read_text().strip().replace(":", " ")
        for link in (directory / "sys" / "class" / "block").iterdir()
    }
    lines = [f"{number} {name}{' 0' * 17}\n" for name, number in numbers.items()]
    (directory / "proc" / "diskstats").write_text("".join(lines))
    config = directory / "disksla.yml"
    config.write_text(
        "disks:\n"
        + "".join(
            f"  - match: {{serial: serial-{letter}}}\n    terms: {{budget: sum, iops:"
            f" {3000 if letter in SLOW else 6000}, bandwidth: 250MB/s}}\n"
            for letter in "abcdefghijklmnopqrst"
        )
        + "machine: {limits: {budget: sum, iops: 20000, bandwidth: 800MB/s}}\n"
    )
    paths = {"sysfs": "sys", "procfs": "proc", "udev-data": "udev"}
    named = [f"--path.{name}={directory / path}" for name, path in paths.items()]
    return [*named, f"--config.file={config}", "--for=200ms"]


def test_what_is_said_of_arrays(
    options: list[str], capsys: Captured, golden: Callable[[Path, str], None]
) -> None:
    names = ("/var/lib/postgresql/16/main", "dm-18", "/srv", "md1", "md2", "md3", "/mnt/mixed")
    said = []
    for name in names:
        assert main(["explain", name, *options]) == 0
        said.append(capsys.readouterr().out.partition("\nvd")[0])
    golden(Path(__file__).parent / "disks" / "arrays.text", "\n".join(said))


def test_arrays_of_all_and_of_one_disk(options: list[str], capsys: Captured) -> None:
    assert main(["explain", *options]) == 0
    text = capsys.readouterr().out
    assert "\n/var/lib/mysql (four-ten, dm-17)\n  It is on vdq, vdr, vds, vdt: LVM raid10" in text
    assert main(["explain", "--json", "vdq", *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [disk["device"] for disk in said["disks"]] == ["vdq"]
    assert {array["device"]: array["disks"] for array in said["arrays"]} == {
        "dm-17": ["vdq", "vdr", "vds", "vdt"],
        "dm-18": ["vdq", "vdr"],
    }
    binding = said["arrays"][1]["binding"]
    assert (binding["read_iops"], binding["read_bytes_per_second"]) == (["vdr"], ["vdq", "vdr"])
