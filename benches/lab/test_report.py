"""Recordings, scenarios and tables of the lab. Needs no disks."""

import gzip
import shutil
from pathlib import Path

import msgspec
import pytest

from disksla.kernel.procfs import CloseSample
from disksla.state.pipeline.tick import decode_tick, encode
from lab.__main__ import main
from lab.experiment import TICKS, only_devices
from lab.negatives import PART as NEGATIVES
from lab.negatives import Negative
from lab.report import HEADING, SHOWN, report
from lab.scenario import all_scenarios, read_scenario

RECORDINGS = Path(__file__).parent / "recordings"
PASSED = Negative("free-two", 100.0, 30.0, (0.0, 0.0, 0.0, 0.0))


def test_recording_has_its_disks_only_under_their_new_names() -> None:
    recording = gzip.decompress((RECORDINGS / "steady-90" / TICKS).read_bytes())
    header, line, *_ = recording.splitlines(keepends=True)
    tick = decode_tick(line, 2)
    assert tick.disks is not None
    [disk] = tick.disks
    close = (CloseSample(1.0, 1, 2, 3, 4, 5),)
    more = msgspec.structs.replace(tick, close={disk.name: close, "sda": close})
    kept = only_devices(header + encode(more), {disk.name: "vdx"})
    renamed = decode_tick(kept.splitlines()[1], 2)
    assert renamed.close == {"vdx": close}
    assert renamed.disks is not None
    assert [each.name for each in renamed.disks] == ["vdx"]
    assert renamed.diskstats is not None
    assert [row.split()[2] for row in renamed.diskstats.splitlines()] == ["vdx"]


def test_disk_that_the_lab_does_not_serve_shares_no_limiter(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yml"
    machine = "machine: {limits: {iops: 9}, meters: [{limit: iops, iops: 9}]}"
    file.write_text(f"caption: none\n{machine}\ndisks: [{{kind: stacked, load: []}}]\n")
    with pytest.raises(msgspec.ValidationError, match="not served by the lab"):
        read_scenario(file)


def test_table_fits_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("mariadb-4", "machine-two-busy", "free-reader-few-writes"):
        shutil.copytree(RECORDINGS / name, tmp_path / "kept" / name)
    written = tmp_path / "accuracy.md"
    written.write_text(f"# Accuracy\n\nText.\n\n{HEADING}\n\nOld.\n")
    parts = ["--part", "databases", "machine", "negatives"]
    arguments = ["--judge", str(tmp_path / "kept"), "--report", str(written), *parts]
    assert main(arguments) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == "0 of 5 failed"
    assert max(map(len, shown)) <= 80
    text = written.read_text()
    assert text.startswith(f"# Accuracy\n\nText.\n\n{HEADING}\n")
    assert text.count("| pass |\n") == 3
    assert "Of 5 results, 5 meet all requirements.\n" in text
    assert "Old." not in text


def test_report_has_at_most_twenty_rows_and_lists_what_failed() -> None:
    assert set(SHOWN) <= all_scenarios().keys()
    assert len(SHOWN) < 20
    failed = Negative("free-one", 100.0, 30.0, (0.0, 0.0, 0.4, 0.0))
    text = report("", [(NEGATIVES, "one", failed), (NEGATIVES, "two", PASSED)], 7)
    assert "| 2 programs on disks without a limiter, without and with terms" in text
    assert ", 240 s | 0.0 | 0.4 | -/- | - | 1 FAIL |\n" in text
    assert "Of 2 results, 1 meet all requirements. These do not:\n\n- `free-one`: terms of" in text
