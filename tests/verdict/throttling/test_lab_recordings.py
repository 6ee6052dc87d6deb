"""Recordings of the lab: verdicts agree with the truth. Needs no disks."""

import gzip
from pathlib import Path

import msgspec
import pytest

from disksla.promise.configuration.settings_file import read_configuration
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import decode_tick
from disksla.verdict.throttling import UNKNOWN_LIMIT, Ceiling, DetectorState
from lab.experiment import CONFIG, TICKS, as_it_ran, without_exact_counts
from lab.negatives import PART as NEGATIVES
from lab.negatives import negative
from lab.replay import replay_records
from lab.scenario import all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

RECORDINGS = Path(__file__).parents[3] / "benches" / "lab" / "recordings"
NAMES = sorted(path.name for path in RECORDINGS.iterdir())


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


def test_observed_ceiling_stays_where_flushes_leave_a_doubt() -> None:
    """PostgreSQL with fsync: every window of the limiter has flushes."""
    recorded = RECORDINGS / "postgresql-8-fsync"
    state = State(read_configuration(recorded / CONFIG))
    lines = gzip.decompress((recorded / TICKS).read_bytes()).splitlines()[1:]
    for number, line in enumerate(lines):
        state = advance(state, decode_tick(line, 2))
        if number == 0:
            detector = DetectorState(ceiling=Ceiling(UNKNOWN_LIMIT, 123.0, 4e5))
            disks = {
                name: msgspec.structs.replace(disk, detector=detector)
                for name, disk in state.monitored.items()
            }
            state = msgspec.structs.replace(state, monitored=disks)
    [disk] = state.monitored.values()
    assert disk.detector.ceiling is not None
    assert disk.detector.ceiling.last_iops is not None


def widths(ticks: Path, config: Path) -> dict[float, float]:
    """Return the distance of the bounds of the credits, by time; not while verdicts wait."""
    return {
        row.monotonic_s: row.credits[0].upper_credits - row.credits[0].lower_credits
        for row in replay_records(ticks, config)
        if row.credits
    }
