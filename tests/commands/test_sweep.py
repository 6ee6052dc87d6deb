"""`disksla sweep` with a simulated /proc and /sys: output and refusals."""

import csv
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from disksla.base.units import GIB
from disksla.commands.cli import main
from disksla.kernel.disks.disk import Disk
from disksla.measure.benchmark.sweep_journal import encode_line
from disksla.measure.benchmark.sweep_matrix import SweepHeader, SweepPlan, SweepRow, read_csv
from support.shell import commands_in, refusals
from support.sysfs_tree import host_of_files

Captured = pytest.CaptureFixture[str]

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
    """Return the flags of a simulated machine whose only disk has the temporary files."""
    mount_point = next(path for path in tmp_path.resolve().parents if os.path.ismount(path))
    mountinfo = f"22 1 254:16 / {mount_point} rw - ext4 /dev/vdb rw\n"
    options = host_of_files(tmp_path, f"vdb 254:16 100GiB serial={SERIAL}", mountinfo=mountinfo)
    config = tmp_path / "config.yml"
    config.write_text(f"state: {{directory: {tmp_path}}}\n")  # a measurement lock of its own
    return [*options, f"--config.file={config}"]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return a finished journal whose cells are out of order."""
    path = tmp_path / "journal"
    path.write_bytes(b"".join((encode_line(HEADER), *map(encode_line, reversed(ROWS)))))
    return path


def stderr_of(capsys: Captured) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_dry_run_prints_the_plan_and_the_commands(
    flags: list[str], tmp_path: Path, capsys: Captured
) -> None:
    output = tmp_path / "journal"
    assert main(["sweep", "vdb", "--dry-run", f"--output={output}", *flags]) == 0
    captured = capsys.readouterr()
    commands = commands_in(captured.out)
    assert len(commands) == 80
    assert all("--filename=/dev/vdb" in line and "--readonly" in line for line in commands)
    text = " ".join(captured.err.split())
    assert "vdb, 100 GiB: 80 cells of 10 s each on the device itself (read only)." in text
    assert "This takes about 14 min." in text
    assert "240 cells with writes are skipped" in text
    assert not output.exists()


def test_file_option_adds_writes(flags: list[str], tmp_path: Path, capsys: Captured) -> None:
    options = ["--file", str(tmp_path), "--file-size=2GiB", "--sizes=4KiB,4KiB", "--workers=1"]
    assert main(["sweep", "vdb", "--dry-run", "--runtime=1s", *options, *flags]) == 0
    captured = capsys.readouterr()
    commands = commands_in(captured.out)
    assert len(commands) == 16
    assert sum("--readonly" in line for line in commands) == 4
    text = " ".join(captured.err.split())
    assert f"16 cells of 1 s each on a file of 2 GiB in {tmp_path}" in text
    assert "This takes about 24 s, plus the time to write the file." in text
    assert "skipped" not in text


def test_dry_run_prints_the_cost(flags: list[str], tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "disksla.yml"
    config.write_text(f"disks:\n  - match: {{serial: {SERIAL}}}\n    terms: yandex.network-hdd\n")
    assert main(["sweep", "vdb", "--dry-run", *flags, f"--config.file={config}"]) == 0
    text = stderr_of(capsys)
    assert "uses the whole limit of the disk (300 IOPS, 30 MiB/s) for 14 min" in text
    assert "of the burst credits; a full refill takes 12 h." in text


EXPECTED = Path(__file__).parent / "refused" / "sweep.txt"
REFUSED = """
--sizes=5
--sizes=MANY
--sizes=4KiB,100B
--sizes=0KiB
--sizes=50GiB --workers=4
--workers=0
--workers=1,x
--runtime=2h
--runtime=2
--file-size=1GiB
--file=/absent
--csv=/proc/version
--html=/absent/a.html
"""


def test_invalid_options_are_refused_before_measuring(
    flags: list[str], capsys: Captured, golden: Callable[[Path, str], None]
) -> None:
    many = {"MANY": ",".join(f"{n}KiB" for n in range(1, 102))}
    golden(EXPECTED, refusals(capsys, "sweep vdb --dry-run", REFUSED, flags, many))


def test_finished_journal_is_only_printed(
    flags: list[str], journal: Path, tmp_path: Path, capsys: Captured
) -> None:
    table, page = tmp_path / "table.csv", tmp_path / "page.html"
    options = [f"--resume={journal}", f"--csv={table}", f"--html={page}"]
    assert main(["sweep", "vdb", *options, *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "Sweep of vdb"
    rows = [line.split() for line in lines[-8:]]
    assert " ".join(rows[0]) == "4 KiB 100% seq, 100% read 1 ms 1000 3.906 MiB/s"
    assert [row[0] for row in rows] == ["4"] * 4 + ["16"] * 4
    assert read_csv(table.read_text()) == tuple(ROWS)
    assert len(list(csv.reader(table.read_text().splitlines()))) == 9
    assert "8 of 8 cells" in page.read_text()


def test_json_output(flags: list[str], journal: Path, capsys: Captured) -> None:
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


def test_journal_of_another_sweep_is_refused(
    flags: list[str], tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(encode_line(HEADER))
    assert main(["sweep", "vdb", f"--resume={path}", "--runtime=20s", *flags]) == 2
    reason = "it has another plan (runtime_s differ)"
    assert f"cannot resume from {path}: {reason}" in stderr_of(capsys)


@pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
def test_missing_disk_keeps_finished_cells(
    flags: list[str], journal: Path, capsys: Captured
) -> None:
    journal.write_bytes(journal.read_bytes()[:-3])
    kept = journal.read_bytes().rpartition(b"\n")[0] + b"\n"
    assert main(["sweep", "vdb", f"--resume={journal}", *flags]) == 2
    text = stderr_of(capsys)
    assert "disksla: /dev/vdb does not exist (0 of 1 cells were measured; resume with:" in text
    assert f"disksla sweep vdb --resume {journal})" in text
    assert journal.read_bytes() == kept


def test_directory_on_another_disk_is_refused(
    flags: list[str], tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(
        encode_line(
            replace(HEADER, directory="/proc", file_bytes=GIB, plan=replace(PLAN, writes=True))
        )
    )
    resumed = ["sweep", "vdb", f"--resume={path}", *flags]
    assert main([*resumed, "--file=/proc"]) == 2
    assert "/proc is not on vdb: its file system is mounted at /proc" in stderr_of(capsys)
    assert main([*resumed, "--dry-run"]) == 2
    text = stderr_of(capsys)
    assert "it was measured on a file of 1 GiB in /proc, not on the device itself;" in text
    assert "is not taken from a journal, so repeat --file and --file-size" in text
