"""`disksla sweep` on a machine made of files: what it says, refuses and shows."""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from disksla.benchmark.sweep_journal import SweepHeader, encode_line
from disksla.benchmark.sweep_matrix import SweepPlan, SweepRow, read_csv
from disksla.cli import main
from disksla.disks.disk import Disk
from disksla.units import GIB

SERIAL = "6ea73b81"
PLAN = SweepPlan(sizes=(4096, 16384), workers=(1,), runtime_s=10.0)
HEADER = SweepHeader(
    disk=Disk("vdb", 254, 16, 100 * GIB, serial=SERIAL),
    plan=PLAN,
    started_at_s=1.7e9,
    disksla="0.1",
)
ROWS = [SweepRow(cell, 0.001, 1000.0, 4096000.0) for cell in PLAN.cells()]


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Give the flags that lead to a machine with one disk, on which temporary files lie."""
    sysfs, procfs, udev = (tmp_path / name for name in ("sys", "proc", "udev"))
    disk = sysfs / "devices" / "block" / "vdb"
    listing = sysfs / "class" / "block"
    for directory in (disk, listing, procfs / "1", udev):
        directory.mkdir(parents=True)
    (procfs / "diskstats").write_text(f" 254 16 vdb{' 0' * 17}\n")
    for name, content in (("dev", "254:16"), ("size", str(100 * GIB // 512)), ("serial", SERIAL)):
        (disk / name).write_text(f"{content}\n")
    (listing / "vdb").symlink_to(disk)
    mounted = next(place for place in tmp_path.resolve().parents if os.path.ismount(place))
    (procfs / "1" / "mountinfo").write_text(f"22 1 254:16 / {mounted} rw - ext4 /dev/vdb rw\n")
    return [f"--path.sysfs={sysfs}", f"--path.procfs={procfs}", f"--path.udev-data={udev}"]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Give a journal in which everything was measured, out of order."""
    path = tmp_path / "journal"
    path.write_bytes(b"".join((encode_line(HEADER), *map(encode_line, reversed(ROWS)))))
    return path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_a_dry_run_tells_everything_and_does_nothing(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "journal"
    assert main(["sweep", "vdb", "--dry-run", f"--output={output}", *flags]) == 0
    captured = capsys.readouterr()
    commands = captured.out.splitlines()
    assert len(commands) == 80
    assert all("--filename=/dev/vdb" in line and "--readonly" in line for line in commands)
    words = " ".join(captured.err.split())
    assert "vdb, 100 GiB: 80 cells of 10 s each on the device itself, which is only read." in words
    assert "That takes about 14 min." in words
    assert "240 cells with writes are left out" in words
    assert not output.exists()


def test_a_file_brings_the_writes(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--file", str(tmp_path), "--file-size=2GiB", "--sizes=4KiB,4KiB", "--workers=1"]
    assert main(["sweep", "vdb", "--dry-run", "--runtime=1s", *options, *flags]) == 0
    captured = capsys.readouterr()
    commands = captured.out.splitlines()
    assert len(commands) == 16
    assert sum("--readonly" in line for line in commands) == 4
    words = " ".join(captured.err.split())
    assert f"16 cells of 1 s each on a file of our own in {tmp_path} (2 GiB)" in words
    assert "That takes about 24 s, after the file was written." in words
    assert "left out" not in words


def test_what_a_sold_disk_pays_is_told(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "disksla.yml"
    config.write_text(f"disks:\n  - match: {{serial: {SERIAL}}}\n    terms: yandex.network-hdd\n")
    assert main(["sweep", "vdb", "--dry-run", f"--config.file={config}", *flags]) == 0
    words = said(capsys)
    assert "takes all that the disk is sold with (300 IOPS, 30 MiB/s) for 14 min" in words
    assert "of the burst credits; a full refill takes 12 h." in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sizes=5"], "--sizes: expected a size such as"),
        (
            ["--sizes=" + ",".join(f"{n}KiB" for n in range(1, 102))],
            "--sizes: found 101; expected",
        ),
        (["--sizes=4KiB,100B"], "--sizes: expected a multiple of 512 bytes"),
        (["--sizes=0KiB"], "--sizes: expected a multiple of 512 bytes"),
        (["--sizes=50GiB", "--workers=4"], "4 workers with requests of 50 GiB do not fit"),
        (["--workers=0"], "--workers: expected whole numbers from 1 to 256, not '0'"),
        (["--workers=1,x"], "--workers: expected whole numbers from 1 to 256, not 'x'"),
        (["--runtime=2h"], "expected a duration from 100ms to 1h, such as 10s"),
        (["--runtime=2"], "--runtime: '2' has no unit; expected a duration"),
        (["--file-size=1GiB"], "--file-size: there is no file without --file DIR"),
        (["--file=/absent"], "/absent: No such file or directory"),
        (["--file=/proc"], "/proc is not on vdb: its file system is mounted at /proc; expected"),
        (["--csv=/proc/version"], "/proc/version is there already"),
        (["--html=/absent/a.html"], "cannot make /absent/a.html: there is no directory /absent"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is(
    options: list[str], words: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "vdb", "--dry-run", *options, *flags]) == 2
    assert words in said(capsys)


def test_a_finished_journal_is_only_shown(
    flags: list[str], journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, page = tmp_path / "table.csv", tmp_path / "page.html"
    options = [f"--resume={journal}", f"--csv={table}", f"--html={page}"]
    assert main(["sweep", "vdb", *options, *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "vdb, 1 worker"
    rows = [line.split() for line in lines[2:10]]
    assert rows[0] == [
        "4",
        "KiB",
        "100%",
        "seq,",
        "100%",
        "read",
        "1",
        "ms",
        "1000",
        "3.906",
        "MiB/s",
    ]
    assert [row[0] for row in rows] == ["4"] * 4 + ["16"] * 4
    assert read_csv(table.read_text()) == tuple(ROWS)
    assert len(list(csv.reader(table.read_text().splitlines()))) == 9
    assert "8 of 8 cells" in page.read_text()


def test_a_cell_in_which_nothing_completed_has_no_response_time(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stalled"
    stalled = [replace(row, mean_latency_s=None, iops=0.0) for row in ROWS]
    path.write_bytes(b"".join((encode_line(HEADER), *map(encode_line, stalled))))
    assert main(["sweep", "vdb", f"--resume={path}", *flags]) == 0
    assert "100% read - 0" in " ".join(capsys.readouterr().out.split())


def test_a_finished_journal_as_json(
    flags: list[str], journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "vdb", f"--resume={journal}", "--json", *flags]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["identity"]["serial"] == SERIAL
    assert shown["plan"]["sizes"] == [4096, 16384]
    assert shown["cells"][0] == {
        "workers": 1,
        "request_bytes": 4096,
        "random_share": 0,
        "read_share": 1,
        "mean_latency_seconds": 0.001,
        "iops": 1000,
        "bytes_per_second": 4096000,
    }


def test_a_journal_that_was_cut_short_says_what_is_left(
    flags: list[str], journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.write_bytes(journal.read_bytes()[:-3])
    assert main(["sweep", "vdb", f"--resume={journal}", "--dry-run", *flags]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "1 of them are left." in " ".join(captured.err.split())


@pytest.mark.parametrize(
    ("before", "options", "words"),
    [
        (HEADER, ["--runtime=20s"], "it has another plan (runtime_s differ)"),
        (HEADER, ["--sizes=4KiB"], "it has another plan (sizes differ)"),
        (
            replace(HEADER, disk=replace(HEADER.disk, serial="other")),
            [],
            "it is of another disk (vdb with serial other, 107374182400 bytes)",
        ),
    ],
)
def test_a_journal_of_something_else_is_refused(
    before: SweepHeader,
    options: list[str],
    words: str,
    flags: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(encode_line(before))
    assert main(["sweep", "vdb", f"--resume={path}", *options, *flags]) == 2
    assert f"{path} cannot be gone on with: {words}" in said(capsys)


@pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
def test_what_was_measured_stays_when_the_disk_goes(
    flags: list[str], journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.write_bytes(journal.read_bytes()[:-3])
    kept = journal.read_bytes().rpartition(b"\n")[0] + b"\n"
    assert main(["sweep", "vdb", f"--resume={journal}", *flags]) == 2
    words = said(capsys)
    assert "disksla: /dev/vdb does not exist (0 of 1 cells were measured; go on with:" in words
    assert f"disksla sweep vdb --resume {journal})" in words
    assert journal.read_bytes() == kept


def test_a_file_is_not_made_on_another_disk(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(
        encode_line(
            replace(HEADER, directory="/proc", file_bytes=GIB, plan=replace(PLAN, writes=True))
        )
    )
    assert main(["sweep", "vdb", f"--resume={path}", *flags]) == 2
    assert "/proc is not on vdb: its file system is mounted at /proc" in said(capsys)
