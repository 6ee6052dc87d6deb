"""Tests of `disksla limits --textfile` with a machine made of files."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from disksla.base.units import GIB
from disksla.commands.cli import main
from support.sysfs_tree import add_device

Captured = pytest.CaptureFixture[str]
Write = Callable[[str], int]

EXPECTED = Path(__file__).parent / "limits" / "textfile.prom"
SEPARATE = "{budget: separate, read_iops: 500, write_iops: 300, latency: 1ms}"
CONFIG = f"""
disks:
  - {{match: {{device: vda}}, terms: yandex.network-ssd}}
  - {{match: {{serial: of-vdb}}, terms: {SEPARATE}}}
discovery: {{exclude: ['^vdd']}}
machine: {{vcpus: 4}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "disksla.prom"


@pytest.fixture
def write(tmp_path: Path, file: Path) -> Write:
    """Return a function that writes the file of a machine with this configuration."""
    sysfs, procfs = tmp_path / "sys", tmp_path / "proc"
    for number, name in enumerate(("vda", "vdb", "vdc", "vdd")):
        add_device(sysfs, f"block/{name}", f"254:{number}", 100 * GIB, serial=f"of-{name}")
    (procfs / "1").mkdir(parents=True)
    (procfs / "1" / "mountinfo").write_text("22 1 254:1 / /data rw - ext4 /dev/vdb rw\n")
    config = tmp_path / "disksla.yml"

    def written(text: str) -> int:
        config.write_text(text)
        paths = (f"--path.sysfs={sysfs}", f"--path.procfs={procfs}")
        return main(["limits", f"--textfile={file}", f"--config.file={config}", *paths])

    return written


def test_limits_of_all_disks_that_have_any(
    write: Write, file: Path, capsys: Captured, golden: Callable[[Path, str], None]
) -> None:
    assert write(CONFIG) == 0
    lines = file.read_text().splitlines(keepends=True)
    golden(EXPECTED, "".join(line for line in lines if not line.startswith("# HELP")))
    assert file.stat().st_mode & 0o777 == 0o644
    assert capsys.readouterr().err == (
        "disksla: vdc left out: no limits are known: no entry of the configuration or of terms.d"
        " matches\n"
    )


def test_without_terms_no_limits_stay_in_the_file(write: Write, file: Path) -> None:
    assert (write(CONFIG), write("{}")) == (0, 1)
    assert "disksla_limit" not in file.read_text()


def test_error_leaves_the_file_as_it_was(write: Write, file: Path, capsys: Captured) -> None:
    write(CONFIG)
    before = file.read_bytes()
    assert write("disks: [{match: {device: vda}, terms: nonsense}]") == 2
    assert "nonsense" in capsys.readouterr().err
    assert file.read_bytes() == before
    file.unlink()
    file.mkdir()
    assert write(CONFIG) == 2
    assert capsys.readouterr().err.endswith(f"cannot write {file}: Is a directory\n")
    assert sorted(each.name for each in file.parent.glob("*.prom*")) == ["disksla.prom"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--textfile=limits.txt",), "found 'limits.txt'; expected a name that ends with .prom"),
        (("aws.gp3", "--textfile=x.prom"), "found terms with --textfile; expected one of them"),
        (("--iops=3", "--textfile=x.prom"), "found --iops with --textfile; expected one of them"),
    ],
)
def test_options_that_mean_nothing(
    options: tuple[str, ...], message: str, capsys: Captured
) -> None:
    assert main(["limits", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("caching", "groups"), [("none", {"uncached"}), ("read-only", set())])
def test_group_that_a_cache_serves_in_part_is_left_out(
    caching: str, groups: set[str], write: Write, file: Path
) -> None:
    """Its load is not the sum of its disks."""
    disks = f"disks: [{{match: {{device: vda}}, terms: azure.premium-ssd, caching: {caching}}}]"
    assert write(f"{disks}\nmachine: {{type: Standard_D2s_v3}}\n") == 0
    assert set(re.findall(r'machine_info{.*group="(\w+)"', file.read_text())) == groups
