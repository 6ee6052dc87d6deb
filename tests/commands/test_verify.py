"""`disksla verify` without a disk: plans, preconditions, errors, reports."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from disksla.commands.cli import main
from support.shell import commands_in, refusals
from support.sysfs_tree import host_of_files

Captured = pytest.CaptureFixture[str]

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the options for a simulated machine whose devices do not exist."""
    disks = ("vdxa 254:0 20GiB", "vdxa1 254:1 19GiB partition=1 below=vdxa")
    mountinfo = "22 1 254:1 / / rw - ext4 /dev/vdxa1 rw\n"
    vdxb = "vdxb 254:16 20GiB serial=vol-1"
    options = host_of_files(tmp_path, *disks, vdxb, mountinfo=mountinfo)
    config = tmp_path / "config.yml"
    config.write_text(
        f"state: {{directory: {tmp_path}}}\n"
        "disks: [{match: {device: vdxb}, terms: vk.ceph-ssd, size: 50GiB}]\n"
    )
    return [*options, f"--config.file={config}"]


def test_dry_run_prints_commands_and_duration(flags: list[str], capsys: Captured) -> None:
    assert main(["verify", "vdxb", "--dry-run", "--runtime=4m", *flags]) == 0
    captured = capsys.readouterr()
    assert "5 tests of 4 min; expected duration: 20.1 min" in captured.err
    commands = commands_in(captured.out)
    assert len(commands) == 5
    for fio_command in commands:
        assert fio_command.startswith("fio --name=")
        assert "--readonly" in fio_command
        assert "--filename=/dev/vdxb" in fio_command
        assert "--runtime=240000ms" in fio_command
    assert "--rate_iops=1455" in commands[-1]  # 50 GiB are promised 1500


def test_dry_run_mentions_burst_credits(flags: list[str], capsys: Captured) -> None:
    command = ["verify", "vdxb", "--dry-run", "--terms=yandex.network-hdd", *flags]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "so the results may be above its baseline (--wait-for-base" in captured.err
    assert [fio_command.split()[1] for fio_command in commands_in(captured.out)] == [
        "--name=read-4k",
        "--name=randread-4k",
        "--name=read-4m",
    ]
    assert main([*command, "--wait-for-base"]) == 0
    assert "plus up to 31.3 min to use up burst credits" in capsys.readouterr().err


def test_size_replaces_the_configured_size(flags: list[str], capsys: Captured) -> None:
    assert main(["verify", "vdxb", "--dry-run", "--size=100GiB", *flags]) == 0
    assert "--rate_iops=2910" in capsys.readouterr().out


def test_dry_run_reports_violated_preconditions(flags: list[str], capsys: Captured) -> None:
    command = ["verify", "vdxa", "--dry-run", "--terms=vk.ceph-ssd", "--runtime=2s", *flags]
    assert main(command) == 0
    message = capsys.readouterr().err
    assert "precondition violated: the system runs from vdxa: it is mounted at /" in message
    assert "precondition violated: a runtime of 2 s is too short" in message


@needs_fio
def test_violated_precondition_prevents_the_tests(
    flags: list[str], tmp_path: Path, capsys: Captured
) -> None:
    page = tmp_path / "page.html"
    command = ["verify", "vdxa", "--terms=vk.ceph-ssd", f"--html={page}", *flags]
    assert main(command) == 2
    captured = capsys.readouterr()
    message = " ".join(captured.out.split())
    assert "a precondition is violated; --force runs the test anyway" in message
    assert "precondition violated: the system runs from vdxa" in message
    assert "NOT VALID" in message
    assert "the daemon will not publish this result" in captured.err
    assert "the system runs from vdxa" in page.read_text()


@needs_fio
def test_missing_device_is_not_measured(flags: list[str], capsys: Captured) -> None:
    assert main(["verify", "vdxb", "--json", *flags]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "incomplete"
    assert report["key"] == "serial:vol-1"
    assert report["tests"][0]["reason"] == "/dev/vdxb does not exist"


EXPECTED = Path(__file__).parent / "refused" / "verify.txt"
REFUSED = """
vdxz
vdxa1
vdxa
vdxa --size=1GiB
vdxb --terms=vk.ceph
vdxb --size=0GiB
vdxb --size=big
vdxb --runtime=long
vdxb --runtime=1ms
vdxb --write-to-raw-device=vdb
vdxa --terms=vk.ceph-ssd --write-to-raw-device=vdxa
vdxb --destroy-data=x
vdxb --write-to-raw-device=vdxb --destroy-data=x
vdxb --file=/nowhere
vdxb --file=/proc
vdxb --file-size=1GiB
vdxb --html=/nowhere/page.html
vdxb --html=/
"""


def test_invalid_requests_are_refused(
    flags: list[str], tmp_path: Path, capsys: Captured, golden: Callable[[Path, str], None]
) -> None:
    golden(EXPECTED, refusals(capsys, "verify", REFUSED, flags, {"HERE": tmp_path}))


def test_file_excludes_raw_device(flags: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "vdxb", "--file=/tmp", "--write-to-raw-device=vdxb", *flags])
    assert ended.value.code == 2
