"""Recordings of the lab: verdicts agree with the truth. Needs no disks."""

import gzip
from pathlib import Path

import msgspec
import pytest

from disksla.pipeline.recording import decode_tick, encode
from lab.__main__ import main
from lab.experiment import CONFIG, TICKS, as_it_ran
from lab.replay import replay_records
from lab.scenario import all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

RECORDINGS = Path(__file__).parent / "lab" / "recordings"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.iterdir()))
def test_verdicts_on_a_recording_agree_with_the_truth(name: str) -> None:
    """A name may say after @ what was different."""
    of_scenario = all_scenarios()[name.partition("@")[0]]
    scenario = as_it_ran(read_scenario(of_scenario), RECORDINGS / name)
    for verdict in verdicts(name, scenario, RECORDINGS / name):
        assert verdict.problems == [], f"\n{headings()}\n{row(verdict)}"


def test_exact_counts_close_the_bounds_of_credits(tmp_path: Path) -> None:
    """The recording of a disk that is flushed, with its exact counts and without."""
    recorded = RECORDINGS / "fdatasync-credits"
    header, *lines = gzip.decompress((recorded / TICKS).read_bytes()).splitlines(keepends=True)
    ticks = [decode_tick(line, 2) for line in lines]
    assert sum(bool(tick.data_writes) for tick in ticks) > len(ticks) / 2
    without = tmp_path / "ticks.jsonl"
    stripped = [encode(msgspec.structs.replace(tick, data_writes={})) for tick in ticks]
    without.write_bytes(header + b"".join(stripped))
    exact = widths(recorded / TICKS, recorded / CONFIG)
    ranges = widths(without, recorded / CONFIG)
    times = exact.keys() & ranges.keys()
    assert len(times) > len(ticks) / 2
    assert all(exact[time_s] <= ranges[time_s] for time_s in times)
    assert sum(exact[time_s] for time_s in times) < 0.6 * sum(ranges[time_s] for time_s in times)


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
    written = tmp_path / "accuracy.md"
    assert main(["--judge", str(RECORDINGS), "--report", str(written)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("0 of ")
    assert max(map(len, shown)) <= 80
    assert written.read_text().count("| pass |\n") == len(shown) - 2
