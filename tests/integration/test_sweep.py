"""Sweeps of loop devices with fio."""

import csv
import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from disksla.base.units import MIB
from disksla.measure.benchmark.sweep_journal import SweepJournal, load_journal
from support.daemon_process import DISKSLA, PATIENCE_S, own_state, run
from support.file_system import mounted_ext4
from support.waiting import eventually

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
SMALL = ("--runtime=300ms", "--sizes=4KiB,16KiB", "--workers=1", "--force")


def fio_on(target: str) -> list[str]:
    """Return the command lines of all fio processes that measure a target."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if f"--filename={target} " in line:
            found.append(line)
    return found


def rows(journal: Path) -> int:
    """Return the number of finished cells."""
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0


def interrupted(journal: Path, *arguments: str, after_rows: int) -> SweepJournal:
    """Start a sweep, and interrupt it while a cell is measured."""
    command = [str(DISKSLA), "sweep", *arguments, own_state(journal.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert eventually(lambda: rows(journal) >= after_rows, PATIENCE_S)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert stdout == b""
    assert b"Traceback" not in stderr
    assert b"resume with: disksla sweep" in stderr
    return load_journal(journal)


@pytest.mark.in_check
def test_interrupted_sweep_is_resumed(loop_device: str, tmp_path: Path) -> None:
    journal, table, page = (tmp_path / name for name in ("journal", "table.csv", "page.html"))
    before = interrupted(journal, loop_device, f"--output={journal}", *SMALL, after_rows=3)
    # A fio that was just starting ends by itself, because its parent is gone.
    assert eventually(lambda: not fio_on(f"/dev/{loop_device}"), PATIENCE_S)
    assert 3 <= len(before.rows) < 8
    with journal.open("ab") as torn:
        torn.write(b'{"cell":{"workers":1,"requ')
    files = (f"--csv={table}", f"--html={page}")
    again = (f"--resume={journal}", own_state(tmp_path), "--force", "--json")
    ended = run("sweep", loop_device, *again, *files)
    after = load_journal(journal)
    assert len(after.rows) == 8
    assert after.rows[: len(before.rows)] == before.rows
    assert all(row.iops > 0 and row.mean_latency_s for row in after.rows)
    assert f"Cells left to measure: {8 - len(before.rows)}." in " ".join(ended.stderr.split())
    assert len(json.loads(ended.stdout)["cells"]) == 8
    assert len(list(csv.reader(table.read_text().splitlines()))) == 9
    assert "8 of 8 cells" in page.read_text()


@pytest.mark.usefixtures("loop_device")
def test_scratch_file_is_removed(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with mounted_ext4(tmp_path, 96 * MIB) as (device, mount_point):
        before = sorted(mount_point.rglob("*"))
        options = (
            "--file",
            str(mount_point),
            "--file-size=16MiB",
            "--sizes=4KiB",
            "--runtime=200ms",
            "--workers=1",
            "--force",
        )
        found = interrupted(journal, device, f"--output={journal}", *options, after_rows=2)
        assert sorted(mount_point.rglob("*")) == before
        assert found.header.plan.writes
        where = ("--file", str(mount_point), "--file-size=16MiB")
        ended = run("sweep", device, f"--resume={journal}", own_state(tmp_path), "--force", *where)
        assert sorted(mount_point.rglob("*")) == before
    assert len(load_journal(journal).rows) == 16
    lines = ended.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert sum(", 0% read" in line for line in lines) == 4
