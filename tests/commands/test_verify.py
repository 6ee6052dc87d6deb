"""`disksla verify` as far as it comes without a disk: plans, conditions, refusals, reports."""

import json
import shutil
from pathlib import Path

import pytest

from disksla.cli import main
from disksla.units import GIB
from support.sysfs_tree import add_device

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
ZEROS = " 0" * 17


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Give the flags that lead to a machine whose disks nobody can open."""
    sysfs, procfs, udev = (tmp_path / name for name in ("sys", "proc", "udev"))
    add_device(sysfs, "block/vdxa", "254:0", 20 * GIB)
    add_device(sysfs, "block/vdxa/vdxa1", "254:1", 19 * GIB, partition="1")
    add_device(sysfs, "block/vdxb", "254:16", 20 * GIB, serial="vol-1")
    (procfs / "1").mkdir(parents=True)
    (procfs / "1" / "mountinfo").write_text("22 1 254:1 / / rw - ext4 /dev/vdxa1 rw\n")
    (procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
    (procfs / "diskstats").write_text(f" 254 0 vdxa{ZEROS}\n 254 16 vdxb{ZEROS}\n")
    config = tmp_path / "config.yml"
    config.write_text(
        f"state: {{directory: {tmp_path}}}\n"
        "disks: [{match: {device: vdxb}, terms: vk.ceph-ssd, size: 50GiB}]\n"
    )
    return [
        f"--path.sysfs={sysfs}",
        f"--path.procfs={procfs}",
        f"--path.udev-data={udev}",
        f"--config.file={config}",
    ]


def test_a_dry_run_says_what_would_be_run_and_for_how_long(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "vdxb", "--dry-run", "--runtime=4m", *flags]) == 0
    captured = capsys.readouterr()
    assert "about 20.1 min: 5 tests of 4 min" in captured.err
    lines = captured.out.splitlines()
    assert len(lines) == 5
    for line in lines:
        assert line.startswith("fio --name=")
        assert "--readonly" in line
        assert "--filename=/dev/vdxb" in line
        assert "--runtime=240000ms" in line
    assert "--rate_iops=1455" in lines[-1]  # 50 GiB are promised 1500


def test_credits_are_announced(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["verify", "vdxb", "--dry-run", "--terms=yandex.network-hdd", *flags]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "so it may be measured above its base (--wait-for-base" in captured.err
    assert [line.split()[1] for line in captured.out.splitlines()] == [
        "--name=read-4k",
        "--name=randread-4k",
        "--name=read-4m",
    ]
    assert main([*words, "--wait-for-base"]) == 0
    assert "and up to 31.3 min to use up burst credits" in capsys.readouterr().err


def test_the_size_that_was_sold_can_be_told(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "vdxb", "--dry-run", "--size=100GiB", *flags]) == 0
    assert "--rate_iops=2910" in capsys.readouterr().out


def test_violated_conditions_are_named_beforehand(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["verify", "vdxa", "--dry-run", "--terms=vk.ceph-ssd", "--runtime=2s", *flags]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "condition violated: the system runs from vdxa: it is mounted at /" in said
    assert "condition violated: a line of 2 s is too short" in said


@needs_fio
def test_a_test_whose_conditions_do_not_hold_is_not_begun(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    words = ["verify", "vdxa", "--terms=vk.ceph-ssd", f"--html={page}", *flags]
    assert main(words) == 2
    captured = capsys.readouterr()
    said = " ".join(captured.out.split())
    assert "the conditions of the test do not hold (--force measures)" in said
    assert "condition violated: the system runs from vdxa" in said
    assert "NOT VALID" in said
    assert "not left for the daemon to publish" in captured.err
    assert "the system runs from vdxa" in page.read_text()


@needs_fio
def test_a_disk_that_cannot_be_opened_is_not_measured(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "vdxb", "--json", *flags]) == 2
    account = json.loads(capsys.readouterr().out)
    assert account["verdict"] == "incomplete"
    assert account["key"] == "serial:vol-1"
    assert account["lines"][0]["reason"] == "/dev/vdxb is not there"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vdxz"], "no disk named 'vdxz'"),
        (["vdxa1"], "vdxa1 is a part of vdxa, which is what was sold"),
        (["vdxa"], "nothing is promised that could be verified: nothing in the configuration"),
        (["vdxa", "--size=1GiB"], "--size without --terms, and nothing is configured for vdxa"),
        (["vdxb", "--terms=vk.ceph"], "no terms are called 'vk.ceph'"),
        (["vdxb", "--size=0GiB"], "--size: expected a size above zero"),
        (["vdxb", "--size=big"], "--size: expected a size such as"),
        (["vdxb", "--runtime=long"], "--runtime: expected a duration"),
        (["vdxb", "--runtime=1ms"], "--runtime: expected 1s to 1d"),
        (["vdxb", "--write-to-raw-device=vdb"], "says 'vdb', but the disk is vdxb"),
        (["vdxa", "--terms=vk.ceph-ssd", "--write-to-raw-device=vdxa"], "is not overwritten"),
        (["vdxb", "--file=/nowhere"], "/nowhere: No such file or directory"),
        (["vdxb", "--file=/proc"], "does not lie on vdxb"),
        (["vdxb", "--html=/nowhere/page.html"], "cannot be written"),
        (["vdxb", "--junit=/"], "cannot be written"),
    ],
)
def test_what_must_not_be_done_is_refused(
    words: list[str], said: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *words, *flags]) == 2
    assert said in capsys.readouterr().err


def test_a_disk_is_tested_on_a_file_or_raw_but_not_both(flags: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "vdxb", "--file=/tmp", "--write-to-raw-device=vdxb", *flags])
    assert ended.value.code == 2


def test_the_size_of_a_file_needs_a_file(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "vdxb", "--dry-run", "--file-size=1GiB", *flags]) == 2
    assert "--file-size: there is no file without --file DIR" in capsys.readouterr().err
