"""Recordings of the lab: verdicts agree with the truth. Needs no disks."""

import gzip
import shutil
from pathlib import Path

import msgspec
import pytest

from disksla.pipeline.recording import decode_tick, encode
from disksla.procfs import CloseSample
from lab.__main__ import main
from lab.experiment import CONFIG, TICKS, as_it_ran, only_devices, without_exact_counts
from lab.negatives import PART as NEGATIVES
from lab.negatives import Negative, negative
from lab.replay import replay_records
from lab.report import HEADING, SHOWN, report
from lab.scenario import all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

RECORDINGS = Path(__file__).parent / "lab" / "recordings"
NAMES = sorted(path.name for path in RECORDINGS.iterdir())
PASSED = Negative("free-two", 100.0, 30.0, (0.0, 0.0, 0.0, 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_on_a_recording_agree_with_the_truth(name: str) -> None:
    file = all_scenarios()[name]
    if file.parent.name == NEGATIVES:
        assert negative(name, RECORDINGS / name).problems == []
        return
    scenario = as_it_ran(read_scenario(file), RECORDINGS / name)
    for verdict in verdicts(name, scenario, RECORDINGS / name):
        assert verdict.problems == [], f"\n{headings()}\n{row(verdict)}"


def test_exact_counts_close_the_bounds_of_credits(tmp_path: Path) -> None:
    """The recording of a disk that is flushed, with its exact counts and without."""
    recorded = RECORDINGS / "fdatasync-credits"
    recording = gzip.decompress((recorded / TICKS).read_bytes())
    ticks = [decode_tick(line, 2) for line in recording.splitlines()[1:]]
    assert sum(bool(tick.data_writes) for tick in ticks) > len(ticks) / 2
    without = tmp_path / "ticks.jsonl"
    without.write_bytes(without_exact_counts(recording))
    exact = widths(recorded / TICKS, recorded / CONFIG)
    ranges = widths(without, recorded / CONFIG)
    times = exact.keys() & ranges.keys()
    assert len(times) > len(ticks) / 20
    assert all(exact[time_s] <= ranges[time_s] for time_s in times)
    assert sum(exact[time_s] for time_s in times) < 0.6 * sum(ranges[time_s] for time_s in times)


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


def widths(ticks: Path, config: Path) -> dict[float, float]:
    """Return the distance of the bounds of the credits, by time; not while verdicts wait."""
    return {
        row.monotonic_s: row.credits[0].upper_credits - row.credits[0].lower_credits
        for row in replay_records(ticks, config)
        if row.credits
    }


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
